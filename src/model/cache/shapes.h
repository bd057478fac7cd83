// model/cache/shapes.h: the sizes of a layer's memory, on any lane.
#pragma once

namespace foresay {

/// Keys and values of softmax attention, per position.
struct KvShape {
  int kv_heads = 0, key_dim = 0, value_dim = 0;
  int window = 0;  ///< W: a row sees itself and the W - 1 positions before it; 0: all positions before it

  /// The first position that a row at `position` sees.
  [[nodiscard]] int first_seen(int position) const {
    return window > 0 && position >= window ? position - window + 1 : 0;
  }
};

/// Convolution window and state of GatedDeltaNet.
struct RecurrentShape {
  int conv_channels = 0, conv_kernel = 0;  ///< C, K
  int key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
};

}  // namespace foresay
