// kernels/kernel_table.h: every kernel that exists once per instruction set, as a table of functions per set.
#pragma once

#include "kernels/attention.h"
#include "kernels/gated_delta.h"
#include "kernels/linear.h"
#include "kernels/linear_int8.h"
#include "kernels/row_ops.h"
#include "kernels/unpack_row.h"

namespace foresay::kernels {

/// Members have the names, arguments and meaning of the functions in the contracts (row_ops.h, linear.h, ...).
struct KernelTable {
  decltype(&foresay::rms_norm_row) rms_norm_row;
  decltype(&foresay::gated_rms_norm_row) gated_rms_norm_row;
  decltype(&foresay::l2_norm_row) l2_norm_row;
  decltype(&foresay::rope_row) rope_row;
  decltype(&foresay::swiglu_row) swiglu_row;
  decltype(&foresay::sigmoid_gate_row) sigmoid_gate_row;
  decltype(&foresay::add_row) add_row;
  decltype(&foresay::exp_row) exp_row;
  decltype(&foresay::unpack_row) unpack_row;
  decltype(&foresay::unpack_codes) unpack_codes;
  decltype(&foresay::linear) linear;
  decltype(&foresay::dot_rows) dot_rows;
  decltype(&foresay::quantise_row) quantise_row;
  decltype(&foresay::linear_int8) linear_int8;
  decltype(&foresay::attend) attend;
  decltype(&foresay::join_softmax) join_softmax;
  decltype(&foresay::store_kv) store_kv;
  decltype(&foresay::gated_delta) gated_delta;
  decltype(&foresay::causal_conv_silu) causal_conv_silu;
};

extern const KernelTable kReference;
#if defined(__x86_64__)
extern const KernelTable kAvx2, kAvxVnni, kAvx512;
#elif defined(__aarch64__)
extern const KernelTable kNeon, kNeonI8mm;
#endif

/// The table of the instruction set in use (base/cpu_features.h).
[[nodiscard]] const KernelTable& current();

}  // namespace foresay::kernels
