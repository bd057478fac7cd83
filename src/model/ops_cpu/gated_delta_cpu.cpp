// CPU lane: GatedDeltaNet. Rows are walked in order, so chunking never changes a bit. A key head and its value heads,
// from convolution to output norm, are one task.
#include <algorithm>
#include <cmath>

#include "kernels/gated_delta.h"
#include "kernels/row_ops.h"
#include "model/ops_cpu/ops_cpu.h"

namespace foresay {
namespace {

constexpr float kL2Eps = 1e-6f;    // fixed, on the sum of squares; not rms_norm_eps (docs/families/qwen3_5.md)
constexpr int kRowsTogether = 32;  // rows convolved before the recurrence walks them: they stay in the nearest cache

std::size_t product(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

Tensor CpuOps::gated_delta(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z, const Tensor& b,
    const Tensor& a, std::span<const CacheSlice> slices) {
  const ProfileScope timed(profile(), "gated_delta");
  const RecurrentShape& s = spec.shape;
  cpu::check(qkv.width == s.conv_channels && z.width == s.value_heads * s.value_dim && b.width == s.value_heads &&
                 a.width == s.value_heads,
      "gated_delta", "an input has the wrong width");
  cpu::check(s.key_dim <= kMostKeyDim, "gated_delta", "a key has more than 512 dimensions");
  cpu::Builder out = make(qkv.rows, z.width);
  for (const CacheSlice& slice : slices) gated_delta_slice(spec, qkv, z, b, a, slice, out);
  return std::move(out).done();
}

void CpuOps::gated_delta_slice(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z, const Tensor& b,
    const Tensor& a, const CacheSlice& slice, cpu::Builder& out) {
  auto& cache = static_cast<RecurrentCache&>(*slice.cache);
  const RecurrentShape& s = spec.shape;
  const int count = slice.count, channels = s.conv_channels, past = s.conv_kernel - 1;
  const int q_width = s.key_heads * s.key_dim, v_width = s.value_heads * s.value_dim;
  const int share = s.value_heads / s.key_heads;  // value heads per key head, consecutive
  cache.begin(count);

  RecurrentCache::Tape tape;
  tape.rows = count;
  tape.key.resize(product(count, q_width));
  tape.delta.resize(product(count, v_width));
  tape.decay.resize(product(count, s.value_heads));
  if (slice.provisional)
    tape.conv.assign(cpu::row(qkv, slice.first), cpu::row(qkv, slice.first) + product(count, channels));
  std::vector<float> beta(tape.decay.size());
  for (int r = 0; r < count; ++r) {
    for (int h = 0; h < s.value_heads; ++h) {
      const std::size_t at = product(r, s.value_heads) + static_cast<std::size_t>(h);
      beta[at] = sigmoid(cpu::row(b, slice.first + r)[h]);
      tape.decay[at] = std::exp(
          -std::exp(cpu::data(spec.a_log)[h]) * softplus(cpu::row(a, slice.first + r)[h] + cpu::data(spec.dt_bias)[h]));
    }
  }

  // Channels of a key head: its part of q, of k, and of the values of its value heads.
  struct Range {
    int first, last;
  };
  const int width = 2 * s.key_dim + share * s.value_dim;
  const int together = slice.provisional ? count : std::min(count, kRowsTogether);  // provisional: one walk, one copy
  const auto task = [&](int head) {
    thread_local std::vector<float> mixed;  // [together, width]: q, k, v of the rows at hand
    mixed.resize(product(together, width));
    const Range ranges[] = {{head * s.key_dim, (head + 1) * s.key_dim},
        {q_width + head * s.key_dim, q_width + (head + 1) * s.key_dim},
        {2 * q_width + head * share * s.value_dim, 2 * q_width + (head + 1) * share * s.value_dim}};
    for (const Range& range : ranges) cache.settle_window(range.first, range.last);
    for (int begin = 0; begin < count; begin += together) {
      const int rows = std::min(together, count - begin);
      const float* u = cpu::row(qkv, slice.first + begin);
      // The rows before these: the window, or rows of this very call.
      const float* window = begin == 0 ? cache.window() : u - product(past, channels);
      int column = 0;
      for (const Range& range : ranges) {
        causal_conv_silu(window, u, rows, channels, s.conv_kernel, cpu::data(spec.conv), mixed.data() + column, width,
            range.first, range.last);
        column += range.last - range.first;
      }
      for (int r = 0; r < rows; ++r) {
        float* q = mixed.data() + product(r, width);
        l2_norm_row(q, kL2Eps, 1.0f / std::sqrt(static_cast<float>(s.key_dim)), s.key_dim, q);
        l2_norm_row(q + s.key_dim, kL2Eps, 1.0f, s.key_dim,
            tape.key.data() + product(begin + r, q_width) + product(head, s.key_dim));
      }
      for (int h = head * share; h < (head + 1) * share; ++h) {
        const std::size_t gate = product(begin, s.value_heads) + static_cast<std::size_t>(h);
        const DeltaRows walk{.count = rows,
            .query = mixed.data(),
            .key = tape.key.data() + product(begin, q_width) + product(head, s.key_dim),
            .value = mixed.data() + 2 * s.key_dim + product(h - head * share, s.value_dim),
            .decay = tape.decay.data() + gate,
            .beta = beta.data() + gate,
            .delta = tape.delta.data() + product(begin, v_width) + product(h, s.value_dim),
            .y = out.row(slice.first + begin) + h * s.value_dim,
            .query_stride = width,
            .key_stride = q_width,
            .value_stride = width,
            .decay_stride = s.value_heads,
            .delta_stride = v_width,
            .y_stride = v_width};
        foresay::gated_delta(cache.state(h), s.value_dim, s.key_dim, begin == 0 ? cache.past(h) : RecordedRows{}, walk,
            !slice.provisional);
        for (int r = begin; r < begin + rows; ++r) {
          float* y = out.row(slice.first + r) + h * s.value_dim;
          gated_rms_norm_row(
              y, cpu::data(spec.norm), spec.norm_eps, cpu::row(z, slice.first + r) + h * s.value_dim, s.value_dim, y);
        }
      }
    }
    if (slice.provisional) return;
    for (const Range& range : ranges) {
      slide_window(cache.window(), cpu::row(qkv, slice.first), count, channels, s.conv_kernel, range.first, range.last);
    }
  };
  pool_.parallel_for(s.key_heads, 1, [&](int first, int last) {
    for (int head = first; head < last; ++head) task(head);
  });

  if (slice.provisional) {
    cache.record(std::move(tape));
  } else {
    cache.commit(count);
  }
}

}  // namespace foresay
