#!/usr/bin/env bash
# Runs every fuzz target on its corpus and on inputs made from it. Usage: fuzz.sh RUNS [TARGET...]; RUNS per target,
# 0 for no end. What breaks a target is left in build/fuzz/found. Inputs are the same every time for the same RUNS.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=$1
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(fuzz/corpus/*)
mkdir -p build/fuzz/found
for target in "${targets[@]}"; do
  target=$(basename "$target")
  limit=()
  [ "$runs" -eq 0 ] || limit=(-runs="$runs")
  grown=$(mktemp -d)  # libFuzzer writes to its first folder: the corpus in the tree stays as it is
  echo "fuzz $target"
  if ! "build/fuzz/fuzz_$target" "${limit[@]}" -seed=1 -max_len=65536 -timeout=60 -rss_limit_mb=3000 \
    -artifact_prefix="build/fuzz/found/$target-" "$grown" "fuzz/corpus/$target" >"build/fuzz/$target.log" 2>&1; then
    tail -40 "build/fuzz/$target.log" >&2
    echo "fuzz: $target broke; the input is in build/fuzz/found" >&2
    exit 1
  fi
  rm -rf "$grown"
done
