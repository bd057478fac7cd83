"""Writes tests/golden/sampling/mlx_lm.json: what mlx-lm's logits processors and sampler make of random rows, histories
and settings.

    pip install -r tools/requirements-golden.txt
    python tools/make_sampling_golden.py tests/golden/sampling/mlx_lm.json

Both are mlx-lm's own (make_logits_processors, make_sampler); only the last step, the random draw, is replaced by a copy
of what it would have drawn from. xtc's coin is not random here: its probability is 0 or 1. `border` is the smallest
distance of any id from the edge of a filter: below about 1e-6 float32 may fall on either side.
"""

import importlib.metadata
import json
import math
import sys

import mlx.core as mx
import numpy as np
from mlx_lm import sample_utils

VOCAB = 64
ROWS = 40
SETTINGS_PER_ROW = 5

drawn_from = []


def capture(logits, temp):
    drawn_from.append(logits * (1.0 / temp))
    return mx.argmax(logits, axis=-1)


def gap_between(kept, dropped):
    """Distance of a filter's edge from the nearest id, where it has both sides."""
    return float(kept.min() - dropped.max()) if len(kept) and len(dropped) else 1.0


def border(logprobs, s):
    """Distance to the nearest filter edge, filter after filter, in float64 on the same float32 log-probabilities."""
    x = np.sort(np.array(logprobs).astype(np.float64))[::-1]
    gaps = [1.0]
    if s["top_p"] < 1:
        probabilities = np.exp(x - x[0])
        above = np.cumsum(probabilities) - probabilities
        gaps.append(np.abs(above / probabilities.sum() - s["top_p"]).min())
        x = x[x >= x[np.sum(above < s["top_p"] * probabilities.sum()) - 1]]
    if s["min_p"] > 0:
        gaps.append(np.abs(x - x[0] - math.log(s["min_p"])).min())
        low = x - x[0] < math.log(s["min_p"])
        low[: s["min_keep"]] = False
        if s["min_keep"] > 1:
            gaps.append(gap_between(x[: s["min_keep"]], x[s["min_keep"] :]))
        x = x[~low]
    if s["xtc_probability"] > 0:
        probabilities = np.exp(x - x[0])
        probabilities /= probabilities.sum()
        gaps.append(np.abs(probabilities - s["xtc_threshold"]).min())
        likely = x[probabilities > s["xtc_threshold"]]
        if len(likely):
            x = x[x <= likely.min()]  # exempt ids only widen what top-k may keep
    if 0 < s["top_k"] < len(x):
        gaps.append(x[s["top_k"] - 1] - x[s["top_k"]])
    return float(min(gaps))


def random_setting(random, history):
    def sometimes(share, value, otherwise):
        return value() if random.random() < share else otherwise

    biased = random.choice(VOCAB, int(random.integers(1, 5)), replace=False)
    return {
        "temperature": float(random.choice([0.2, 0.3, 0.6, 0.8, 1.0, 1.3, 1.7])),
        "top_k": sometimes(0.5, lambda: int(random.integers(1, VOCAB)), 0),
        "top_p": sometimes(0.6, lambda: round(float(random.uniform(0.05, 0.999)), 3), 1.0),
        "min_p": sometimes(0.4, lambda: round(float(random.uniform(0.001, 0.5)), 3), 0.0),
        "min_keep": sometimes(0.3, lambda: int(random.integers(1, 6)), 1),
        "xtc_probability": sometimes(0.4, lambda: 1.0, 0.0),
        "xtc_threshold": round(float(random.uniform(0.01, 0.3)), 3),
        "xtc_exempt": sometimes(0.2, lambda: [int(random.integers(0, VOCAB))], []),
        "repetition_penalty": sometimes(0.5, lambda: round(float(random.uniform(0.5, 2.5)), 3), 1.0),
        "repetition_window": int(random.choice([1, 5, 20, 100])),
        "presence_penalty": sometimes(0.5, lambda: round(float(random.uniform(-2, 2)), 3), 0.0),
        "presence_window": int(random.choice([1, 5, 20, 100])),
        "frequency_penalty": sometimes(0.5, lambda: round(float(random.uniform(-2, 2)), 3), 0.0),
        "frequency_window": int(random.choice([1, 5, 20, 100])),
        "logit_bias": sometimes(0.4, lambda: {str(i): round(float(random.uniform(-4, 4)), 2) for i in biased}, {}),
        "history": history,
    }


def main(path):
    sample_utils.categorical_sampling = capture
    random = np.random.default_rng(20240811)
    rows, cases = [], []
    for row in range(ROWS):
        logits = random.normal(0, random.choice([0.5, 2.0, 5.0]), VOCAB)
        # A quarter of the rows have many equal logits.
        step = 0.5 if row % 4 == 0 else 0.001
        logits = (np.round(logits / step) * step).astype(np.float32)
        rows.append([round(float(x), 3) for x in logits])
        for _ in range(SETTINGS_PER_ROW):
            # Few distinct tokens, so that some come often.
            history = [int(x) for x in random.integers(0, 24, int(random.integers(0, 60)))]
            s = random_setting(random, history)
            processed = mx.array(np.array(rows[-1], dtype=np.float32))[None]
            for processor in sample_utils.make_logits_processors(
                {int(i): bias for i, bias in s["logit_bias"].items()},
                s["repetition_penalty"],
                s["repetition_window"],
                s["presence_penalty"],
                s["presence_window"],
                s["frequency_penalty"],
                s["frequency_window"],
            ):
                if history:  # generate_step never calls them without a token
                    processed = processor(mx.array(history), processed)
                elif s["logit_bias"]:
                    processed = processor(mx.array([], dtype=mx.int32), processed)
                    break  # the bias comes first and needs no history
            logprobs = processed - mx.logsumexp(processed, keepdims=True)  # as generate_step hands them over
            sampler = sample_utils.make_sampler(
                temp=s["temperature"],
                top_p=s["top_p"],
                min_p=s["min_p"],
                min_tokens_to_keep=s["min_keep"],
                top_k=s["top_k"],
                xtc_probability=s["xtc_probability"],
                xtc_threshold=s["xtc_threshold"],
                xtc_special_tokens=s["xtc_exempt"],
            )
            drawn_from.clear()
            mx.eval(sampler(logprobs))
            scaled = np.array(drawn_from[0])[0]
            ids = np.flatnonzero(np.isfinite(scaled))
            cases.append(
                {
                    "row": row,
                    **s,
                    "border": float(f"{border(np.array(logprobs)[0], s):.2e}"),
                    "ids": ids.tolist(),
                    "logp": [round(float(x), 6) for x in scaled[ids]],
                }
            )
    versions = {name: importlib.metadata.version(name) for name in ("mlx", "mlx-lm")}
    with open(path, "w") as file:
        json.dump({"made_by": "tools/make_sampling_golden.py", **versions, "rows": rows, "cases": cases}, file,
                  separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
