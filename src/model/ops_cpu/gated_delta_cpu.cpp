// CPU lane: GatedDeltaNet. Rows are walked in order, so chunking never changes a bit; heads run side by side.
#include <algorithm>
#include <cmath>

#include "kernels/gated_delta.h"
#include "kernels/row_ops.h"
#include "model/ops_cpu/ops_cpu.h"

namespace foresay {
namespace {

constexpr float kL2Eps = 1e-6f;  // fixed, on the sum of squares; not rms_norm_eps (docs/families/qwen3_5.md)
constexpr int kConvGrain = 64;   // channels per part

std::size_t product(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

Tensor CpuOps::gated_delta(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z, const Tensor& b,
    const Tensor& a, std::span<const CacheSlice> slices) {
  const RecurrentShape& s = spec.shape;
  cpu::check(qkv.width == s.conv_channels && z.width == s.value_heads * s.value_dim && b.width == s.value_heads &&
                 a.width == s.value_heads,
      "gated_delta", "an input has the wrong width");
  cpu::Builder out(qkv.rows, z.width);
  for (const CacheSlice& slice : slices) {
    gated_delta_slice(spec, cpu::row(qkv, slice.first), cpu::row(z, slice.first), cpu::row(b, slice.first),
        cpu::row(a, slice.first), slice, out.row(slice.first));
  }
  return std::move(out).done();
}

void CpuOps::gated_delta_slice(const GatedDeltaSpec& spec, const float* qkv, const float* z, const float* b,
    const float* a, const CacheSlice& slice, float* out) {
  auto& cache = static_cast<RecurrentCache&>(*slice.cache);
  const RecurrentShape& s = spec.shape;
  const int rows = slice.count, channels = s.conv_channels;
  const int q_width = s.key_heads * s.key_dim, v_width = s.value_heads * s.value_dim;
  cache.begin(rows);
  cache.settle_window();

  std::vector<float> conv(product(rows, channels));
  pool_.parallel_for(channels, kConvGrain, [&](int first, int last) {
    causal_conv_silu(
        cache.window(), qkv, rows, channels, s.conv_kernel, cpu::data(spec.conv), conv.data(), first, last);
  });

  RecurrentCache::Tape tape;
  tape.rows = rows;
  tape.key.resize(product(rows, q_width));
  tape.delta.resize(product(rows, v_width));
  tape.decay.resize(product(rows, s.value_heads));
  std::vector<float> query(product(rows, q_width)), beta(product(rows, s.value_heads));
  pool_.parallel_for(rows, 1, [&](int first, int last) {
    for (int r = first; r < last; ++r) {
      const float* u = conv.data() + product(r, channels);
      for (int h = 0; h < s.key_heads; ++h) {
        const std::size_t at = product(r, q_width) + product(h, s.key_dim);
        l2_norm_row(
            u + h * s.key_dim, kL2Eps, 1.0f / std::sqrt(static_cast<float>(s.key_dim)), s.key_dim, query.data() + at);
        l2_norm_row(u + q_width + h * s.key_dim, kL2Eps, 1.0f, s.key_dim, tape.key.data() + at);
      }
      for (int h = 0; h < s.value_heads; ++h) {
        const std::size_t at = product(r, s.value_heads) + static_cast<std::size_t>(h);
        beta[at] = sigmoid(b[at]);
        tape.decay[at] = std::exp(-std::exp(cpu::data(spec.a_log)[h]) * softplus(a[at] + cpu::data(spec.dt_bias)[h]));
      }
    }
  });

  const int share = s.value_heads / s.key_heads;  // value heads per key head, consecutive
  pool_.parallel_for(s.value_heads, 1, [&](int first, int last) {
    thread_local std::vector<float> scratch;
    for (int h = first; h < last; ++h) {
      cache.settle_state(h);
      float* state = cache.state(h);
      if (slice.provisional) {  // the live state is read, not written
        scratch.assign(state, state + product(s.value_dim, s.key_dim));
        state = scratch.data();
      }
      for (int r = 0; r < rows; ++r) {
        const std::size_t at = product(r, s.value_heads) + static_cast<std::size_t>(h);
        const std::size_t qk = product(r, q_width) + product(h / share, s.key_dim);
        const std::size_t vd = product(r, v_width) + product(h, s.value_dim);
        gated_delta_step(state, s.value_dim, s.key_dim, tape.decay[at], beta[at], query.data() + qk,
            tape.key.data() + qk, conv.data() + product(r, channels) + 2 * q_width + h * s.value_dim,
            tape.delta.data() + vd, out + vd);
        rms_norm_row(out + vd, cpu::data(spec.norm), spec.norm_eps, s.value_dim, out + vd);
        for (int d = 0; d < s.value_dim; ++d)
          out[vd + static_cast<std::size_t>(d)] *= silu(z[vd + static_cast<std::size_t>(d)]);
      }
    }
  });

  if (slice.provisional) {
    tape.conv.assign(qkv, qkv + product(rows, channels));
    cache.record(std::move(tape));
  } else {
    slide_window(cache.window(), qkv, rows, channels, s.conv_kernel);
    cache.commit(rows);
  }
}

}  // namespace foresay
