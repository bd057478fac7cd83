// foresay/token.h: token ids.
#pragma once

#include <cstdint>

namespace foresay {

using TokenId = std::int32_t;

}  // namespace foresay
