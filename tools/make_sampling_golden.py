"""Writes tests/golden/sampling/mlx_lm.json: what mlx-lm's sampler chain makes of random rows and random settings.

    pip install -r tools/requirements.txt
    python tools/make_sampling_golden.py tests/golden/sampling/mlx_lm.json

The chain is mlx-lm's own make_sampler; only its last step, the random draw, is replaced by a copy of what it would have
drawn from. `border` is the smallest distance of any id from the edge of a filter: below about 1e-6 float32 may fall on
either side.
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


def border(logprobs, temp, top_k, top_p, min_p):
    """Distance to the nearest filter edge, by float64 arithmetic on the same float32 log-probabilities."""
    order = np.sort(logprobs.astype(np.float64))[::-1]
    gaps = [1.0]
    if top_p < 1:
        probabilities = np.exp(order)
        above = np.cumsum(probabilities) - probabilities
        gaps.append(np.abs(above / probabilities.sum() - top_p).min())
    if min_p > 0:
        gaps.append(np.abs(order - order[0] - math.log(min_p)).min())
    if top_k > 0:
        gaps.append(order[top_k - 1] - order[top_k])
    return float(min(gaps))


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
        logits = mx.array(np.array(rows[-1], dtype=np.float32))
        logprobs = logits - mx.logsumexp(logits, keepdims=True)  # as generate_step hands them over
        for _ in range(SETTINGS_PER_ROW):
            setting = {
                "temperature": round(float(random.choice([0.2, 0.3, 0.6, 0.8, 1.0, 1.3, 1.7])), 2),
                "top_k": int(random.integers(1, VOCAB)) if random.random() < 0.5 else 0,
                "top_p": round(float(random.uniform(0.05, 0.999)), 3) if random.random() < 0.6 else 1.0,
                "min_p": round(float(random.uniform(0.001, 0.5)), 3) if random.random() < 0.4 else 0.0,
            }
            sampler = sample_utils.make_sampler(
                temp=setting["temperature"], top_p=setting["top_p"], min_p=setting["min_p"], top_k=setting["top_k"]
            )
            drawn_from.clear()
            mx.eval(sampler(logprobs[None]))
            scaled = np.array(drawn_from[0])[0]
            ids = np.flatnonzero(np.isfinite(scaled))
            gap = border(
                np.array(logprobs), setting["temperature"], setting["top_k"], setting["top_p"], setting["min_p"]
            )
            cases.append(
                {
                    "row": row,
                    **setting,
                    "border": float(f"{gap:.2e}"),
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
