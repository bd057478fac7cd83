#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace foresay {
namespace {

struct Result {
  std::string text;
  bool stopped = false;
};

/// Feeds `text` in pieces of `burst` bytes.
Result run(const std::vector<std::string>& stops, std::string_view text, std::size_t burst) {
  StopStrings filter(stops);
  Result result;
  for (std::size_t i = 0; i < text.size(); i += burst) {
    const auto [piece, stopped] = filter.push(text.substr(i, burst));
    result.text += piece;
    result.stopped = stopped;
  }
  result.text += filter.finish();
  return result;
}

TEST(StopStrings, AStopOverAnyBorderIsCutWithNothingOfItSent) {
  const std::string text = "alpha beta gamma delta";
  for (std::size_t burst = 1; burst <= text.size(); ++burst) {
    const auto [cut, stopped] = run({"beta gamma"}, text, burst);
    EXPECT_EQ(cut, "alpha ") << burst;
    EXPECT_TRUE(stopped) << burst;
  }
}

TEST(StopStrings, EveryPairOfBordersGivesTheSame) {
  const std::string text = "alpha beta gamma delta";
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      StopStrings filter({"beta gamma"});
      std::string out;
      for (const auto& part : {text.substr(0, i), text.substr(i, j - i), text.substr(j)}) out += filter.push(part).text;
      EXPECT_EQ(out + filter.finish(), "alpha ") << i << " " << j;
    }
  }
}

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeAStop) {
  StopStrings filter({"beta gamma"});
  EXPECT_EQ(filter.push("alpha be").text, "alpha ");
  EXPECT_EQ(filter.push("tb").text, "bet");
  EXPECT_EQ(filter.push("eta gam").text, "");
  EXPECT_EQ(filter.push("bit").text, "beta gambit");
  EXPECT_EQ(filter.push(" be").text, " ");
  EXPECT_EQ(filter.finish(), "be");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopStrings, AStopThatOverlapsItselfIsFoundAtItsFirstPlace) {
  for (std::size_t burst = 1; burst <= 5; ++burst) {
    EXPECT_EQ(run({"aab"}, "xaaab!", burst).text, "xa") << burst;
    EXPECT_EQ(run({"abab"}, "abaabababab", burst).text, "aba") << burst;
    EXPECT_EQ(run({"\n\n"}, "a\nb\n\n\nc", burst).text, "a\nb") << burst;
  }
}

TEST(StopStrings, OfSeveralTheFirstCompletedEndsTheText) {
  for (std::size_t burst = 1; burst <= 5; ++burst) {
    EXPECT_EQ(run({"two", "one"}, "zero one two", burst).text, "zero ") << burst;
    EXPECT_EQ(run({"abcd", "bc"}, "xabcd", burst).text, "xa") << burst;
    EXPECT_EQ(run({"cd", "abcd"}, "xabcd", burst).text, "x") << burst;
    EXPECT_EQ(run({"a", "ab"}, "xab", burst).text, "x") << burst;
  }
}

TEST(StopStrings, NothingComesAfterAStop) {
  StopStrings filter({"."});
  const auto first = filter.push("a.b");
  EXPECT_EQ(first.text, "a");
  EXPECT_TRUE(first.stopped);
  const auto second = filter.push("c");
  EXPECT_EQ(second.text, "");
  EXPECT_TRUE(second.stopped);
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopStrings, WithoutStopsTextPassesAtOnce) {
  StopStrings filter({"", ""});
  EXPECT_EQ(filter.push("abc").text, "abc");
  EXPECT_FALSE(filter.push("").stopped);
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopStrings, NeverSplitsACharacter) {
  StopStrings filter({"é!"});
  EXPECT_EQ(filter.push("aé").text, "a");
  EXPECT_EQ(filter.push("è").text, "éè");
}

/// The first end of any stop, and of the stops that end there the longest.
std::string cut(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopStrings, RandomTextsInRandomPiecesAreCutAsWholeOnes) {
  std::mt19937 random(11);
  const auto word = [&](std::size_t least, std::size_t most) {
    std::string s(least + random() % (most - least + 1), ' ');
    for (auto& c : s) c = static_cast<char>('a' + random() % 2);
    return s;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (auto& stop : stops) stop = word(1, 6);
    const auto text = word(0, 20);
    StopStrings filter(stops);
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      const auto n = 1 + random() % 5;
      out += filter.push(std::string_view(text).substr(i, n)).text;
      i += n;
    }
    ASSERT_EQ(out + filter.finish(), cut(stops, text));
  }
}

}  // namespace
}  // namespace foresay
