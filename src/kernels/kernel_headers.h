// kernels/kernel_headers.h: every standard header that the bodies use. An instruction set includes this before it
// chooses its target, so that none of their functions is compiled for the set.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "kernels/elements.h"
#include "kernels/kernel_table.h"
