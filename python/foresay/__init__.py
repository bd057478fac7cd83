"""foresay runs language models that carry multi-token-prediction heads: several tokens per pass, the same answers.

    import foresay

    model = foresay.load("models/tiny-qwen3_5")
    answer = model.generate("def main(argv):", max_tokens=64)
    print(answer.text, answer.stats.tokens_per_pass)

Failures raise foresay.Error, whose ``code`` says of what kind.
"""

from __future__ import annotations

import atexit
import logging
import os
import warnings
from importlib.metadata import version

from . import _foresay
from .answer import Answer, Piece, Stats, TokenLogprobs
from .error import Error
from .model import Batch, Model, Prompt, Stream
from .options import Options, usage, validate

__all__ = [
    "Answer", "Batch", "Error", "Model", "Options", "Piece", "Prompt", "Stats", "Stream", "TokenLogprobs", "load",
    "validate",
]
__version__ = version("foresay")

atexit.register(_foresay.interpreter_ends)  # waits for the pass that a daemon thread runs


def load(
    folder: str | os.PathLike[str] | None = None,
    *,
    mtp: str = "on",
    lane: str = "auto",
    device: str = "auto",
    threads: int = 0,
    prefill_chunk: int = 512,
) -> Model:
    """Opens a checkpoint in the Hugging Face or MLX layout.

    folder         a folder, or org/name[@revision] of the local Hugging Face cache; None is the bundled tiny-qwen3_5
    mtp            the MTP head: "on" (one that is present but unusable is an error), "auto" (a warning), "off",
                   "required"
    lane, device   what computes, and where (docs/library.md)
    threads        of the cpu lane; 0 is every core this process may use
    prefill_chunk  prompt rows per pass, and so how long Ctrl-C may have to wait; changes no answer

    What the load decided goes to the logger "foresay" (INFO), what the user may want to mend to ``warnings``.
    """
    for name, value in (("mtp", mtp), ("lane", lane), ("device", device)):
        if not isinstance(value, str):
            raise usage(f"{name}: expected a word, found {value!r:.60}")
    for name, value in (("threads", threads), ("prefill_chunk", prefill_chunk)):
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 31:
            raise usage(f"{name}: expected a whole number from 0, found {value!r:.60}")
    folder = "" if folder is None else os.fsdecode(folder)
    note = logging.getLogger(__name__).info
    return Model(_foresay.load(folder, mtp, lane, device, threads, prefill_chunk, note, _warn))


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)
