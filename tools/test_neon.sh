#!/usr/bin/env bash
# Builds the kernel tests for 64-bit Arm and runs them under qemu, on a processor with every extension and on one that
# has the int8 dot product alone. Usage: tools/test_neon.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/neon}
cmake -S tests/neon -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" -- --quiet
qemu-aarch64 -cpu max,sve=off "$build/kernels_neon_test" --gtest_brief=1
qemu-aarch64 -cpu neoverse-n1 "$build/kernels_neon_test" --gtest_brief=1
