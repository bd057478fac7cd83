// kernels/kernel_table_body.h: all bodies, and the table of one instruction set. The file that includes this has chosen
// the set, a namespace (FORESAY_LANES), its Lanes (FORESAY_LANES_HEADER) and its int8 loops (FORESAY_INT8_TILE).
#pragma once

#include FORESAY_LANES_HEADER

#include "kernels/attention_body.h"
#include "kernels/gated_delta_body.h"
#include "kernels/linear_body.h"
#include "kernels/linear_int8_body.h"
#include "kernels/row_ops_body.h"
#include "kernels/unpack_row_body.h"

namespace foresay::kernels::FORESAY_LANES {

inline constexpr KernelTable kTable = {
    .rms_norm_row = rms_norm_row,
    .gated_rms_norm_row = gated_rms_norm_row,
    .l2_norm_row = l2_norm_row,
    .rope_row = rope_row,
    .swiglu_row = swiglu_row,
    .sigmoid_gate_row = sigmoid_gate_row,
    .add_row = add_row,
    .exp_row = exp_row,
    .unpack_row = unpack_row,
    .unpack_codes = unpack_codes,
    .linear = linear,
    .dot_rows = dot_rows,
    .quantise_row = quantise_row,
    .linear_int8 = linear_int8,
    .attend = attend,
    .join_softmax = join_softmax,
    .store_kv = store_kv,
    .gated_delta = gated_delta,
    .causal_conv_silu = causal_conv_silu,
};

}  // namespace foresay::kernels::FORESAY_LANES
