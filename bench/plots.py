#!/usr/bin/env python3
"""How cost grows with rows, context and model size: measures, keeps JSON lines, draws docs/performance/*.svg.

usage: plots.py [--measure] [--lines FILE.jsonl]     without --measure it draws what FILE already holds
Needs bench/requirements.txt (pip install -r bench/requirements.txt). Measuring takes a while: a context of 32k is read first.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "performance"
SIZES = ("0.8b", "2b", "4b")
CONTEXTS = (128, 1024, 4096, 16384, 32768)
ROWS = "1,2,3,4,6,8,16"
ROW_LABELS = {1: "1 row", 4: "4 rows"}


def measure(file):
    program = ROOT / "build/release/foresay"
    runs = [("0.8b", bits, 128, ROWS) for bits in (4, 8, 16)]
    runs += [("0.8b", 4, context, "1,4") for context in CONTEXTS[1:]]
    runs += [(size, 4, 128, "1,4") for size in SIZES[1:]]
    with open(file, "w") as out:
        for size, bits, context, rows in runs:
            print(f"{size}, {bits} bits, context {context}", file=sys.stderr)
            run = subprocess.run([program, "bench", "passes", "--lane", "cpu", "--shape", f"qwen3_5-{size}", "--bits", str(bits),
                                  "--context", str(context), "--rows", rows], stdout=subprocess.PIPE, text=True, check=True)
            out.write(run.stdout)
            out.flush()


def draw(lines):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plot
    plot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "foresay", "font.size": 9})  # small, and the same each time

    passes = [line for line in lines if line["bench"] == "pass"]

    def points(x, y, **wanted):
        found = {line[x]: line[y] for line in passes if all(line[key] == value for key, value in wanted.items())}
        return [sorted(found), [found[at] for at in sorted(found)]]

    def chart(name, title, x, y, series):
        figure, axes = plot.subplots(figsize=(4.6, 2.8))
        for label, (xs, ys) in series.items():
            if xs:
                axes.plot(xs, ys, marker="o", markersize=3, label=label)
        axes.set(title=title, xlabel=x, ylabel=y, ylim=(0, None))
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
        plot.close(figure)

    FOLDER.mkdir(parents=True, exist_ok=True)
    chart("rows", "Qwen3.5-0.8B shapes", "rows of a pass", "cost against one row",
          {f"{bits} bits": points("rows", "ratio", shape="qwen3_5-0.8b", bits=bits, context=128) for bits in (4, 8, 16)})
    chart("context", "Qwen3.5-0.8B shapes, 4 bits", "tokens in the caches", "ms of a pass",
          {ROW_LABELS[rows]: points("context", "ms", shape="qwen3_5-0.8b", bits=4, rows=rows) for rows in ROW_LABELS})
    gigabytes = {line["shape"]: round(line["gbps"] * line["ms"] / 1e3, 2) for line in passes if line["bits"] == 4 and line["context"] == 128}
    for line in passes:
        line["gb"] = gigabytes.get(line["shape"])
    chart("size", "Qwen3.5 shapes, 4 bits", "GB of weights", "ms of a pass",
          {ROW_LABELS[rows]: points("gb", "ms", bits=4, context=128, rows=rows) for rows in ROW_LABELS})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--lines", default=str(FOLDER / "passes.jsonl"))
    arguments = parser.parse_args()
    if arguments.measure:
        FOLDER.mkdir(parents=True, exist_ok=True)
        measure(arguments.lines)
    with open(arguments.lines) as file:
        draw([json.loads(line) for line in file])


if __name__ == "__main__":
    main()
