// One program per target: FORESAY_FUZZ_TARGET is its function.
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foresay::fuzz::FORESAY_FUZZ_TARGET({data, size});
  return 0;
}
