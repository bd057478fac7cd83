#include "kernels/gated_delta.h"

#include <cmath>

#include "kernels/every_isa.h"
#include "kernels/row_ops.h"

namespace foresay {
namespace {

std::size_t product(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

/// Inputs of one token, keys and queries normalised as the layer does it.
struct Token {
  std::vector<float> q, k, v;
  float decay = 0, beta = 0;

  Token(int value_dim, int key_dim, std::uint64_t seed)
      : q(random_floats(product(key_dim, 1), 3 * seed)),
        k(random_floats(product(key_dim, 1), 3 * seed + 1)),
        v(random_floats(product(value_dim, 1), 3 * seed + 2, 2.0f)) {
    l2_norm_row(q.data(), 1e-6f, 1.0f, key_dim, q.data());
    l2_norm_row(k.data(), 1e-6f, 1.0f, key_dim, k.data());
    const auto gates = random_floats(2, 1000 + seed);
    decay = 0.75f + 0.25f * gates[0];  // 0.5 .. 1
    beta = 0.5f + 0.5f * gates[1];
  }
};

/// S *= g; d = beta (v - S k); S += d k^T; y = S q, in double.
struct PlainState {
  std::vector<double> s;

  std::vector<double> step(const Token& token) {
    const std::size_t dk = token.k.size(), dv = token.v.size();
    std::vector<double> y(dv, 0.0);
    for (double& x : s) x *= token.decay;
    for (std::size_t i = 0; i < dv; ++i) {
      double read = 0;
      for (std::size_t j = 0; j < dk; ++j) read += s[i * dk + j] * token.k[j];
      const double d = token.beta * (token.v[i] - read);
      for (std::size_t j = 0; j < dk; ++j) {
        s[i * dk + j] += d * token.k[j];
        y[i] += s[i * dk + j] * token.q[j];
      }
    }
    return y;
  }
};

DeltaRows one_row(const Token& token, std::vector<float>& delta, std::vector<float>& y) {
  return {.count = 1,
      .query = token.q.data(),
      .key = token.k.data(),
      .value = token.v.data(),
      .decay = &token.decay,
      .beta = &token.beta,
      .delta = delta.data(),
      .y = y.data()};
}

class GatedDelta : public EveryIsa {};
FORESAY_EVERY_ISA(GatedDelta);

const std::vector<std::pair<int, int>> kShapes = {{1, 1}, {7, 16}, {8, 17}, {9, 15}, {33, 31}, {128, 128}};  // Dv, Dk

struct Run {
  std::vector<float> state, y, delta;
};

Run run(int value_dim, int key_dim, int tokens) {
  Run result;
  result.state.resize(product(value_dim, key_dim));
  for (int t = 0; t < tokens; ++t) {
    const Token token(value_dim, key_dim, static_cast<std::uint64_t>(t));
    std::vector<float> y(product(value_dim, 1)), delta(product(value_dim, 1));
    gated_delta(result.state.data(), value_dim, key_dim, {}, one_row(token, delta, y), /*keep=*/true);
    result.y.insert(result.y.end(), y.begin(), y.end());
    result.delta.insert(result.delta.end(), delta.begin(), delta.end());
  }
  return result;
}

// States and outputs stay below 4, keys have length 1 and old errors decay: 60 tokens stay within 1e-5.
TEST_P(GatedDelta, FollowsThePlainRecurrence) {
  for (const auto& [value_dim, key_dim] : kShapes) {
    const auto result = run(value_dim, key_dim, 60);
    PlainState plain{std::vector<double>(product(value_dim, key_dim), 0.0)};
    std::size_t at = 0;
    for (int t = 0; t < 60; ++t) {
      for (const double y : plain.step(Token(value_dim, key_dim, static_cast<std::uint64_t>(t)))) {
        ASSERT_NEAR(result.y[at++], y, 1e-5) << value_dim << " x " << key_dim << ", token " << t;
      }
    }
    for (std::size_t i = 0; i < plain.s.size(); ++i) ASSERT_NEAR(result.state[i], plain.s[i], 1e-5);
  }
}

TEST_P(GatedDelta, BitsAreThoseOfTheReference) {
  for (const auto& [value_dim, key_dim] : kShapes) {
    const auto expected = on_reference([&, dv = value_dim, dk = key_dim] { return run(dv, dk, 20); });
    const auto result = run(value_dim, key_dim, 20);
    EXPECT_EQ(bits_of(result.state), bits_of(expected.state));
    EXPECT_EQ(bits_of(result.y), bits_of(expected.y));
  }
}

/// Tokens side by side, as a pass has them.
struct Rows {
  std::vector<float> q, k, v, decay, beta, delta, y;
  int value_dim, key_dim;

  Rows(int dv, int dk, int first, int last) : value_dim(dv), key_dim(dk) {
    for (int t = first; t < last; ++t) {
      const Token token(dv, dk, static_cast<std::uint64_t>(t));
      q.insert(q.end(), token.q.begin(), token.q.end());
      k.insert(k.end(), token.k.begin(), token.k.end());
      v.insert(v.end(), token.v.begin(), token.v.end());
      decay.push_back(token.decay);
      beta.push_back(token.beta);
    }
    delta.resize(v.size());
    y.resize(v.size());
  }
  [[nodiscard]] DeltaRows all() {
    return {.count = static_cast<int>(decay.size()),
        .query = q.data(),
        .key = k.data(),
        .value = v.data(),
        .decay = decay.data(),
        .beta = beta.data(),
        .delta = delta.data(),
        .y = y.data(),
        .query_stride = key_dim,
        .key_stride = key_dim,
        .value_stride = value_dim,
        .decay_stride = 1,
        .delta_stride = value_dim,
        .y_stride = value_dim};
  }
  [[nodiscard]] RecordedRows first(int count) const {
    return {.count = count,
        .key = k.data(),
        .delta = delta.data(),
        .decay = decay.data(),
        .key_stride = key_dim,
        .delta_stride = value_dim,
        .decay_stride = 1};
  }
};

TEST_P(GatedDelta, RowsTogetherGiveTheBitsOfRowsOneByOne) {
  for (const auto& [value_dim, key_dim] : kShapes) {
    const auto expected = run(value_dim, key_dim, 20);
    Rows rows(value_dim, key_dim, 0, 20);
    std::vector<float> state(product(value_dim, key_dim));
    gated_delta(state.data(), value_dim, key_dim, {}, rows.all(), /*keep=*/true);
    EXPECT_EQ(bits_of(state), bits_of(expected.state)) << value_dim << " x " << key_dim;
    EXPECT_EQ(bits_of(rows.y), bits_of(expected.y));
    EXPECT_EQ(bits_of(rows.delta), bits_of(expected.delta));
  }
}

TEST_P(GatedDelta, RowsThatDoNotCountLeaveTheStateAndTheKeptOnesReplayTheirBits) {
  for (const auto& [value_dim, key_dim] : kShapes) {
    for (const int kept : {0, 1, 3, 4}) {
      std::vector<float> state = run(value_dim, key_dim, 10).state;
      const auto before = bits_of(state);
      Rows drafted(value_dim, key_dim, 10, 14);
      gated_delta(state.data(), value_dim, key_dim, {}, drafted.all(), /*keep=*/false);
      ASSERT_EQ(bits_of(state), before);
      // The next pass settles what was kept, then walks on without keeping, then settles nothing more.
      Rows next(value_dim, key_dim, 10 + kept, 12 + kept);
      gated_delta(state.data(), value_dim, key_dim, drafted.first(kept), next.all(), /*keep=*/false);
      const auto expected = run(value_dim, key_dim, 12 + kept);
      ASSERT_EQ(bits_of(state), bits_of(run(value_dim, key_dim, 10 + kept).state)) << value_dim << " x " << key_dim;
      const std::vector<float> last(expected.y.end() - 2 * value_dim, expected.y.end());
      ASSERT_EQ(bits_of(next.y), bits_of(last));
    }
  }
}

// ---- convolution

constexpr int kRows = 9, kChannels = 37;

/// Convolves `kRows` rows in chunks that end at `cuts`, sliding the window between them.
/// Taps [K, C].
std::vector<float> convolve(int kernel, const std::vector<int>& cuts, std::vector<float>& window) {
  const auto u = random_floats(product(kRows, kChannels), 5);
  const auto taps = random_floats(product(kChannels, kernel), 6);
  window = random_floats(product(kernel - 1, kChannels), 7);
  std::vector<float> y(u.size());
  int first = 0;
  for (const int last : cuts) {
    const float* rows = u.data() + first * kChannels;
    for (const auto& [from, to] : {std::pair{0, 16}, {16, 17}, {17, kChannels}}) {
      causal_conv_silu(window.data(), rows, last - first, kChannels, kernel, taps.data(),
          y.data() + first * kChannels + from, kChannels, from, to);
      slide_window(window.data(), rows, last - first, kChannels, kernel, from, to);
    }
    first = last;
  }
  return y;
}

class CausalConvolution : public EveryIsa {};
FORESAY_EVERY_ISA(CausalConvolution);

TEST_P(CausalConvolution, BitsAreThoseOfTheReference) {
  for (const int kernel : {1, 2, 4, 5}) {
    std::vector<float> window, other;
    const auto expected = on_reference([&] { return convolve(kernel, {2, kRows}, window); });
    EXPECT_EQ(bits_of(convolve(kernel, {2, kRows}, other)), bits_of(expected)) << kernel;
    EXPECT_EQ(bits_of(other), bits_of(window));
  }
}

TEST_P(CausalConvolution, AnyChunkingGivesTheSameBits) {
  for (const int kernel : {1, 2, 4, 5}) {
    std::vector<float> window, other;
    const auto expected = convolve(kernel, {kRows}, window);
    for (const auto& cuts : std::vector<std::vector<int>>{
             {1, 2, 3, 4, 5, 6, 7, 8, kRows}, {1, kRows}, {2, 4, kRows}, {3, 6, kRows}, {4, 4, kRows}, {8, kRows}}) {
      EXPECT_EQ(bits_of(convolve(kernel, cuts, other)), bits_of(expected)) << kernel;
      EXPECT_EQ(bits_of(other), bits_of(window)) << kernel;
    }
  }
}

TEST_P(CausalConvolution, TheLastTapMeetsTheCurrentRow) {
  const int kernel = 4;
  std::vector<float> after;
  const auto y = convolve(kernel, {kRows}, after);
  auto all = random_floats(product(kernel - 1, kChannels), 7);  // the window, then the rows
  const auto u = random_floats(product(kRows, kChannels), 5);
  const auto taps = random_floats(product(kChannels, kernel), 6);
  all.insert(all.end(), u.begin(), u.end());
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kChannels; ++c) {
      double sum = 0;
      for (int j = 0; j < kernel; ++j) {
        sum += static_cast<double>(taps[static_cast<std::size_t>(j * kChannels + c)]) *
               all[static_cast<std::size_t>((r + j) * kChannels + c)];
      }
      EXPECT_NEAR(y[static_cast<std::size_t>(r * kChannels + c)], sum / (1 + std::exp(-sum)), 1e-6);  // sums below 4
    }
  }
  EXPECT_EQ(after, std::vector<float>(all.end() - (kernel - 1) * kChannels, all.end()));
}

TEST(SlideWindow, NoRowsLeaveItAlone) {
  std::vector<float> window = {1, 2, 3, 4, 5, 6};
  slide_window(window.data(), nullptr, 0, 2, 4, 0, 2);
  EXPECT_EQ(window, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  slide_window(nullptr, window.data(), 3, 2, 1, 0, 2);  // one tap looks at no past
}

}  // namespace
}  // namespace foresay
