// Sliding-window attention on the CPU lane: the contract, and what is its own: pages, ranges, identical bits.
#include "model/window_contract.h"

namespace foresay {
namespace {

/// Pages that hold something to be seen or asked for again, and the rows of the append.
int room(int window, int appended) {
  const int page = PagedKvCache::kPage;
  return (window + PagedKvCache::kSlack + appended + 2 * page - 2) / page * page;
}
WindowKind windowed(int window) {
  return {window, [] { return make_cpu_ops(2); },
      [](Ops& ops, int its_window) { return std::make_unique<AttentionLayer>(ops, its_window); }, /*tolerance=*/0,
      [window](int appended) { return room(window, appended); }};
}
INSTANTIATE_TEST_SUITE_P(Cpu, WindowKinds, ::testing::Values(windowed(1), windowed(9), windowed(64), windowed(70)),
    [](const auto& kind) { return fmt::format("window_{}", kind.param.window); });

// Sums are cut at 1024, 2048, ...: a window begins inside one range and ends in another.
TEST(Window, TheBordersOfRangesArePartOfNoResult) {
  const auto ops = make_cpu_ops(2);
  for (const int window : {100, 1100}) {
    AttentionLayer layer(*ops, window);
    const std::vector<int> tokens = text(0, 2100);
    for (const int first : {1020, 2040}) {
      std::vector<float> rows[2];
      for (const int chunk : {1, 60}) {
        auto cache = layer.make_cache();
        layer.fill(*cache, text(0, first));
        for (int t = first; t < first + 60; t += chunk) {
          const auto some = layer.feed(*cache, text(t, chunk));
          rows[chunk == 1 ? 0 : 1].insert(rows[chunk == 1 ? 0 : 1].end(), some.begin(), some.end());
        }
      }
      EXPECT_EQ(bits_of(rows[0]), bits_of(rows[1])) << window << ", " << first;
      const auto width = static_cast<std::size_t>(layer.out_width());
      for (const std::size_t i : {0, 3, 4, 8, 59}) {
        const std::vector<double> want = attention_by_definition(layer, tokens, first + static_cast<int>(i));
        for (std::size_t d = 0; d < width; ++d) EXPECT_NEAR(double{rows[1][i * width + d]}, want[d], 2e-6);
      }
    }
  }
}

TEST(Window, TheNumberOfThreadsIsPartOfNoResult) {
  const std::vector<int> tokens = text(0, 300);
  std::vector<std::uint32_t> expected;
  for (const int threads : {1, 2, 3}) {
    const auto ops = make_cpu_ops(threads);
    AttentionLayer layer(*ops, 70);
    auto cache = layer.make_cache();
    const auto bits = bits_of(layer.feed(*cache, tokens));
    if (threads == 1) expected = bits;
    EXPECT_EQ(bits, expected) << threads;
  }
}

TEST(Window, AWindowOverTheWholeTextIsFullAttentionToTheBit) {
  const auto ops = make_cpu_ops(2);
  AttentionLayer full(*ops), wide(*ops, 300);
  auto a = full.make_cache(), b = wide.make_cache();
  EXPECT_EQ(bits_of(full.feed(*a, text(0, 300))), bits_of(wide.feed(*b, text(0, 300))));
}

TEST(Window, PagesThatNobodyCanSeeAreFreedByTheNextAppend) {
  const auto ops = make_cpu_ops(1);
  AttentionLayer layer(*ops, 10);
  auto cache = layer.make_cache();
  const auto pages = [&] { return static_cast<const PagedKvCache&>(*cache).pages().size(); };
  layer.fill(*cache, text(0, 200));
  EXPECT_EQ(pages(), 4u);  // the chunk's own
  layer.fill(*cache, text(200, 1));
  EXPECT_EQ(pages(), 3u);  // row 136 sees 127: page 1 stays
  layer.fill(*cache, text(201, 1));
  EXPECT_EQ(pages(), 2u);  // row 137 sees 128
  EXPECT_TRUE(cache->can_truncate(137));
  EXPECT_FALSE(cache->can_truncate(136));
}

TEST(Window, FreedPagesStayWithTheSnapshotThatSharesThem) {
  const auto ops = make_cpu_ops(1);
  AttentionLayer layer(*ops, 10);
  auto cache = layer.make_cache(), other = layer.make_cache();
  layer.fill(*cache, text(0, 70));
  const auto snapshot = cache->snapshot();
  layer.fill(*cache, text(70, 300));
  layer.fill(*cache, text(370, 1));
  other->restore(*snapshot);
  EXPECT_EQ(static_cast<const PagedKvCache&>(*other).pages().size(), 2u);
  EXPECT_EQ(other->length(), 70);
}

}  // namespace
}  // namespace foresay
