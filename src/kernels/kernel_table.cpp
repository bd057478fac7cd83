#include "kernels/kernel_table.h"

#include <cstring>

#include "base/cpu_features.h"

namespace foresay {
namespace kernels {

const KernelTable& current() {
  switch (current_isa()) {
#if defined(__x86_64__)
    case Isa::avx2:
      return kAvx2;
    case Isa::avx_vnni:
      return kAvxVnni;
    case Isa::avx512:
      return kAvx512;
#elif defined(__aarch64__)
    case Isa::neon:
      return kNeon;
    case Isa::neon_i8mm:
      return kNeonI8mm;
#endif
    default:
      return kReference;
  }
}

}  // namespace kernels

void rms_norm_row(const float* x, const float* gain, float eps, int n, float* y) {
  kernels::current().rms_norm_row(x, gain, eps, n, y);
}
void gated_rms_norm_row(const float* x, const float* gain, float eps, const float* z, int n, float* y) {
  kernels::current().gated_rms_norm_row(x, gain, eps, z, n, y);
}
void l2_norm_row(const float* x, float eps, float scale, int n, float* y) {
  kernels::current().l2_norm_row(x, eps, scale, n, y);
}
void rope_row(float* x, const float* cosines, const float* sines, int pairs) {
  kernels::current().rope_row(x, cosines, sines, pairs);
}
void swiglu_row(const float* gate, const float* up, float limit, int n, float* y) {
  kernels::current().swiglu_row(gate, up, limit, n, y);
}
void sigmoid_gate_row(const float* gate, int n, float* y) {
  kernels::current().sigmoid_gate_row(gate, n, y);
}
void add_row(const float* x, const float* z, int n, float* y) {
  kernels::current().add_row(x, z, n, y);
}
void exp_row(const float* x, int n, float* y) {
  kernels::current().exp_row(x, n, y);
}
void unpack_row(const WeightView& w, int n, float* row) {
  kernels::current().unpack_row(w, n, row);
}
void unpack_codes(const WeightView& w, int n, std::uint8_t* codes) {
  kernels::current().unpack_codes(w, n, codes);
}
void linear(const float* x, int rows, const WeightView& w, float* y, int first, int last, float* scratch) {
  kernels::current().linear(x, rows, w, y, first, last, scratch);
}
void dot_rows(const float* rows, int count, const float* v, int n, float* y) {
  kernels::current().dot_rows(rows, count, v, n, y);
}
void quantise_row(const float* x, int in, Int8Order order, std::int8_t* codes, float* scales, float* sums) {
  kernels::current().quantise_row(x, in, order, codes, scales, sums);
}
void linear_int8(
    const Int8Rows& x, const WeightView& w, const int* which, float* y, int first, int last, std::byte* scratch) {
  kernels::current().linear_int8(x, w, which, y, first, last, scratch);
}
void attend(const float* const* q, int queries, std::span<const KvBlock> blocks, KvType type, int key_dim,
    int value_dim, float scale, SoftmaxState* state) {
  kernels::current().attend(q, queries, blocks, type, key_dim, value_dim, scale, state);
}
void join_softmax(std::span<const SoftmaxState> parts, int value_dim, float* out) {
  kernels::current().join_softmax(parts, value_dim, out);
}
void store_kv(const float* row, int n, KvType type, void* to) {
  kernels::current().store_kv(row, n, type, to);
}
void gated_delta(float* state, int value_dim, int key_dim, const RecordedRows& past, const DeltaRows& rows, bool keep) {
  kernels::current().gated_delta(state, value_dim, key_dim, past, rows, keep);
}
void causal_conv_silu(const float* window, const float* u, int rows, int channels, int kernel, const float* taps,
    float* y, std::ptrdiff_t y_stride, int first, int last) {
  kernels::current().causal_conv_silu(window, u, rows, channels, kernel, taps, y, y_stride, first, last);
}

}  // namespace foresay
