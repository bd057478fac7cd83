#!/usr/bin/env python3
"""The targets of docs/performance.md, measured: foresay and llama.cpp in turns on the same shapes, in one run.

usage: run.py [--size 0.8b|2b|4b] [--rounds 3] [--threads N] [--no-peer] [--more] [--docs] [--options '--cpu-activations int8']
Prints the table; every figure goes as a JSON line into build/bench/. `make bench` builds and runs this.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATES = "0.85,0.72,0.60"
TOKENS_PER_PASS = 3.17  # what RATES gives; a run that drew a little more or less is brought back to it
VNNI = ("avx_vnni", "avx512", "neon_i8mm")  # targets of int8 products apply
SAMPLERS = {"temperature 1": ["--temperature", "1"],
            "top-k 20, top-p 0.95": ["--temperature", "1", "--top-k", "20", "--top-p", "0.95"]}

MORE = {"0.8B, 8 bits": ["--shape", "qwen3_5-0.8b", "--bits", "8"],
        "0.8B, bf16": ["--shape", "qwen3_5-0.8b", "--bits", "16"],
        "0.8B, 4 bits, bf16 head": ["--shape", "qwen3_5-0.8b", "--head-bits", "16"],
        "2B, 4 bits": ["--shape", "qwen3_5-2b"],
        "0.8B, 4 bits, context 4k": ["--shape", "qwen3_5-0.8b", "--context", "4096"],
        "0.8B, 4 bits, context 32k": ["--shape", "qwen3_5-0.8b", "--context", "32768"],
        "bundled tiny model": []}


def json_lines(command, environment=None):
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
    if run.returncode != 0:
        sys.exit(f"run.py: failed ({run.returncode}): {shlex.join(map(str, command))}")
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


@contextlib.contextmanager
def neighbour():
    """Another process that keeps one of our cores busy."""
    core = max(os.sched_getaffinity(0))
    process = subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


class Runner:
    def __init__(self, arguments):
        self.a = arguments
        self.figures = []  # of this run: (round, name, value)
        folder = ROOT / "build" / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        self.file = open(folder / time.strftime("run-%Y%m%d-%H%M%S.jsonl"), "w")
        self.commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True,
                                     text=True).stdout.strip()

    def keep(self, round_, name, value, line):
        self.figures.append((round_, name, value))
        self.file.write(json.dumps({"figure": name, "round": round_, "commit": self.commit, **line}) + "\n")
        self.file.flush()

    def foresay(self, bench, *options):
        return json_lines([self.a.program, "bench", bench, "--shape", f"qwen3_5-{self.a.size}", "--bits", "4", "--lane", "cpu",
                           "--threads", str(self.a.threads), *options, *self.a.options])

    def llama(self, figure):
        if not self.a.peer:
            return []
        return json_lines([ROOT / "bench/peers/llama.sh", self.a.size, str(self.a.threads), figure], {"RATES": RATES})

    def round(self, number):
        def kept(name, key, lines):
            for line in lines:
                self.keep(number, name, line[key], line)

        kept("decode", "tok_s", self.foresay("decode", "--depth", "0", "--tokens", "96"))
        kept("llama decode", "tok_s", self.llama("decode"))
        for line in self.foresay("decode", "--depth", "3", "--synthetic-acceptance", RATES, "--tokens", "192"):
            self.keep(number, "drafted", line["tok_s"] * TOKENS_PER_PASS / line["tokens_per_pass"], line)
            self.keep(number, "draft step", line["draft_ratio"], line)
        for line in self.llama("server"):
            self.keep(number, "llama " + ("drafted" if line["spec"] != "none" else "server"), line["tok_s"], line)
        kept("prefill", "tok_s", self.foresay("prefill", "--tokens", "512", "--repeats", "1"))
        kept("llama prefill", "tok_s", self.llama("prefill"))
        for isa in self.a.isas:
            for line in self.foresay("passes", "--isa", isa):
                if line["bench"] == "pass":
                    self.keep(number, f"{isa} pass {line['rows']}", line["ratio"], line)
                if line["bench"] == "pass" and line["rows"] == 1:
                    self.keep(number, f"{isa} bandwidth share", line["share_of_bandwidth"], line)
        for line in self.llama("passes"):
            self.keep(number, f"llama pass {line['rows']} ms", line["ms"], line)
        for name, sampler in SAMPLERS.items():
            kept("sampling, " + name, "sampling_share", self.foresay("decode", "--depth", "3", "--synthetic-acceptance", RATES,
                                                                     "--tokens", "96", *sampler))
        with neighbour():
            kept("decode, core taken", "tok_s", self.foresay("decode", "--depth", "0", "--tokens", "64"))
            kept("llama decode, core taken", "tok_s", self.llama("taken"))
        for line in self.foresay("load", "--repeats", "3"):
            kept("first token", "ms", [line] if line["bench"] == "load" else [])
            kept("memory", "over_mb", [line] if line["bench"] == "memory" else [])

    def more(self):
        """Other shapes, foresay alone, depth 0 and 3 in turns: a Markdown table."""
        text = ["| shape | tokens/s, depth 0 | depth 3 | ratio | one-row pass, ms | pass over 4 rows ÷ one | draft step ÷ one |",
                "| --- | --- | --- | --- | --- | --- | --- |"]
        for name, shape in MORE.items():
            found = {0: [], 3: []}
            for number in range(self.a.rounds if "context" not in name else 1):
                for depth, lines in found.items():
                    lines += json_lines([self.a.program, "bench", "decode", *shape, "--depth", str(depth), "--lane", "cpu", "--threads",
                                         str(self.a.threads), "--tokens", "96", "--synthetic-acceptance", RATES, *self.a.options])
                    self.keep(number, name, lines[-1]["tok_s"], lines[-1])
            middle = {(depth, key): statistics.median(line[key] for line in lines)
                      for depth, lines in found.items() for key in lines[0] if key in ("tok_s", "one_row_ms", "pass_ratio", "draft_ratio")}
            text.append(f"| {name} | {middle[0, 'tok_s']:.4g} | {middle[3, 'tok_s']:.4g} | {middle[3, 'tok_s'] / middle[0, 'tok_s']:.3g} | "
                        f"{middle[3, 'one_row_ms']:.4g} | {middle[3, 'pass_ratio']:.3g} | {middle[3, 'draft_ratio']:.3g} |")
        return "\n".join(text) + "\n"

    def per_round(self, name):
        """Medians within each round: what ran together is compared."""
        rounds = {}
        for number, figure, value in self.figures:
            if figure == name and value is not None:
                rounds.setdefault(number, []).append(value)
        return {number: statistics.median(values) for number, values in rounds.items()}

    def value(self, name):
        values = self.per_round(name).values()
        return statistics.median(values) if values else None

    def ratio(self, ours, *theirs):
        ours = self.per_round(ours)
        theirs = [self.per_round(name) for name in theirs]
        ratios = [value / max(peer[number] for peer in theirs if number in peer) for number, value in ours.items()
                  if any(number in peer for peer in theirs)]
        return statistics.median(ratios) if ratios else None

    def table(self):
        """(figure, measured, at least, aim, more is better); None where it was not measured."""
        rows = [
            ("decode, depth 0 ÷ llama.cpp decode", self.ratio("decode", "llama decode"), 1.25, 1.6, True),
            (f"decode, depth 3 at {RATES} ÷ llama.cpp's better of MTP on and off",
             self.ratio("drafted", "llama drafted", "llama server", "llama decode"), 1.9, 2.8, True),
            ("prefill of 512 tokens ÷ llama.cpp", self.ratio("prefill", "llama prefill"), 1.0, 1.5, True),
        ]
        for isa in self.a.isas:
            rows.append((f"one-row pass, share of read bandwidth, {isa}", self.value(f"{isa} bandwidth share"), 0.80, 0.92, True))
            bars = {2: (1.15, 1.05), 4: (1.3, 1.15), 8: (2.0, 1.5)} if isa in VNNI else {2: (1.25, 1.1), 4: (1.7, 1.4), 8: (3.0, 2.4)}
            for count, (least, aim) in bars.items():
                rows.append((f"pass over {count} rows ÷ one row, {isa}", self.value(f"{isa} pass {count}"), least, aim, False))
        rows.append(("draft step ÷ one-row pass", self.value("draft step"), 0.12, 0.06, False))
        for name in SAMPLERS:
            rows.append((f"sampling, share of a round, {name}", self.value("sampling, " + name), 0.05, 0.02, False))
        rows.append(("start to first token, s", (self.value("first token") or 0) / 1e3 or None, 1.2, 0.5, False))
        rows.append(("memory over weights and caches, MB", self.value("memory"), 300, 150, False))
        return rows

    def markdown(self):
        cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
        text = [f"Qwen3.5-{self.a.size} shapes, affine 4-bit in groups of 64, head too; {self.a.threads} threads of {cpu}; commit "
                f"{self.commit}{', ' + shlex.join(self.a.options) if self.a.options else ''}; medians of {self.a.rounds} rounds.",
                "", "| figure | measured | at least | aim | |", "| --- | --- | --- | --- | --- |"]
        for name, value, least, aim, more in self.table():
            met = "not measured" if value is None else next(
                (word for word, bar in (("aim", aim), ("yes", least)) if (value >= bar if more else value <= bar)), "NO")
            text.append(f"| {name} | {'' if value is None else format(value, '.3g')} | {least:g} | {aim:g} | {met} |")
        text += ["", "| tokens/s | foresay | llama.cpp |", "| --- | --- | --- |"]
        for name, ours, theirs in (("decode", "decode", "llama decode"), ("with drafts", "drafted", "llama drafted"),
                                   ("prefill", "prefill", "llama prefill"),
                                   ("decode, another process busy on one of the cores", "decode, core taken",
                                    "llama decode, core taken")):
            cells = [format(value, ".4g") if value is not None else "" for value in map(self.value, (ours, theirs))]
            text.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join(text) + "\n"


def write_between_markers(file, name, text):
    """Replaces what stands between <!-- name --> and <!-- /name -->."""
    old = file.read_text()
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    head, rest = old.split(begin)
    file.write_text(head + begin + text + end + rest.split(end, 1)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="0.8b", choices=("tiny", "0.8b", "2b", "4b"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--program", default=str(ROOT / "build/release/foresay"))
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="foresay alone")
    parser.add_argument("--more", action="store_true", help="also other packings, sizes and contexts, foresay alone")
    parser.add_argument("--options", type=shlex.split, default=[], help="more options of every `foresay bench`")
    parser.add_argument("--isas", type=lambda text: text.split(","), help="of `bench passes`; default: the strongest, and avx2")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/performance.md")
    arguments = parser.parse_args()
    if arguments.isas is None:
        lane = json_lines([arguments.program, "bench", "prefill", "--lane", "cpu", "--tokens", "1", "--repeats", "1"])[0]["lane"]
        strongest = lane.split(",")[2].strip()
        arguments.isas = ["avx2", strongest] if strongest not in ("avx2", "reference") else [strongest]
    runner = Runner(arguments)
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        runner.round(number)
    text = runner.markdown()
    print(text)
    more = runner.more() if arguments.more else None
    print(more or "")
    if arguments.docs and more:
        write_between_markers(ROOT / "docs/performance.md", "more", more)
    if arguments.docs:
        write_between_markers(ROOT / "docs/performance.md", f"targets-{arguments.size}", text)
    print(f"figures: {runner.file.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
