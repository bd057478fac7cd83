#!/usr/bin/env bash
# Builds two commits and runs the same bench of both in turns: on a shared machine only such ratios mean something.
# usage: compare_commits.sh A B [-n ROUNDS] [--] BENCH OPTIONS...
#   compare_commits.sh HEAD~1 HEAD -n 15 -- decode --shape qwen3_5-0.8b --depth 0
# Prints the median of B ÷ A for each figure (tok_s: more is better; ms: less is) with a 95 % interval. The builds stay
# in build/compare.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
rounds=11; commits=("$1" "$2"); shift 2
if [ "$1" = -n ]; then rounds=$2; shift 2; fi
if [ "$1" = -- ]; then shift; fi

programs=()
for commit in "${commits[@]}"; do
  id=$(git -C "$root" rev-parse --short "$commit^{commit}")
  tree=$root/build/compare/$id
  if [ ! -x "$tree/build/release/foresay" ]; then
    mkdir -p "$tree/build"
    git -C "$root" archive "$id" | tar -x -C "$tree"
    [ -d "$tree/build/rust" ] || cp -a "$root/build/rust" "$tree/build/" 2>/dev/null || true  # the crate takes minutes
    (cd "$tree" && cmake --preset release -DFORESAY_TESTS=OFF >build/release.log &&
      cmake --build --preset release --target foresay -- --quiet) >&2
  fi
  programs+=("$tree/build/release/foresay")
done

python3 - "$rounds" "${programs[@]}" "$@" <<'PYTHON'
import json, random, statistics, subprocess, sys

rounds, programs, bench = int(sys.argv[1]), sys.argv[2:4], sys.argv[4:]
ratios = {}
def figures(program):
    out = subprocess.run([program, "bench", *bench], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {}
    for line in map(json.loads, out.splitlines()):
        key = next((key for key in ("tok_s", "ms", "gbps") if key in line), None)
        if key: found[f"{line['bench']} {line.get('rows', '')} {key}".replace("  ", " ")] = line[key]
    return found
for number in range(rounds):
    order = (0, 1) if number % 2 == 0 else (1, 0)  # neither always runs on the warmer machine
    measured = {which: figures(programs[which]) for which in order}
    for name in measured[0].keys() & measured[1].keys():
        ratios.setdefault(name, []).append(measured[1][name] / measured[0][name])
    print(f"round {number + 1} of {rounds}", file=sys.stderr)
draw = random.Random(0)
for name, values in sorted(ratios.items()):
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    print(f"{name:<20} B/A {statistics.median(values):.3f}  [{medians[50]:.3f}, {medians[1949]:.3f}]  {len(values)} rounds")
PYTHON
