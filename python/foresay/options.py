"""Keyword options of a generation, and the request that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, Literal, SupportsIndex, TypedDict

from . import _foresay
from .error import Error


class Options(TypedDict, total=False):
    """Every option has an "off" default; ranges are checked by name before anything is decoded."""

    max_tokens: int  #: 1 to 2^30; 256
    min_tokens: int  #: no id ends the answer before so many are there
    depth: int  #: tokens drafted per pass, 0 to 8; 3. 0 is plain decoding. Never changes the answer, only its speed
    draft_vocabulary: int  #: drafts come from so many low ids, special tokens and the context's; 0 is all; -1: as it pays
    stop: str | Sequence[str]  #: the answer ends before the first of these texts
    stop_ids: Sequence[int]  #: further ids that end the answer
    ignore_eos: bool  #: go on past the checkpoint's own end-of-turn tokens
    n: int  #: answers to each prompt (generate_many and Batch)
    top_logprobs: int | None  #: log-probabilities wanted: of each token and of so many others
    temperature: float  #: 0 is greedy, the default
    top_k: int  #: 0 is off
    top_p: float  #: in (0, 1]; 1 is off
    min_p: float  #: in [0, 1); 0 is off
    min_keep: int  #: ids that min_p never drops
    xtc_probability: float
    xtc_threshold: float
    xtc_exempt: Sequence[int]
    repetition_penalty: float  #: > 0; 1 is off
    presence_penalty: float
    frequency_penalty: float
    repetition_window: int  #: newest tokens looked at; 0 is all
    presence_window: int
    frequency_window: int
    logit_bias: Mapping[int, float]
    bad_words: Sequence[Sequence[int]]  #: token sequences that are never completed
    order: Sequence[Literal["top_p", "min_p", "xtc", "top_k", "temperature"]]
    seed: int | None  #: the same seed gives the same ids, at every depth
    choice: int  #: which of several answers to one prompt
    acceptance: Literal["ratio", "coupled"] | None  #: default: coupled with a seed, ratio without


_REQUEST = {
    "max_tokens", "min_tokens", "depth", "draft_vocabulary", "stop", "stop_ids", "ignore_eos", "n", "top_logprobs",
}  # fmt: skip
_IDS = {"stop_ids", "xtc_exempt"}
_KNOWN = frozenset(Options.__annotations__)


def usage(message: str) -> Error:
    return Error(message, "usage")


def ids_of(values: Iterable[SupportsIndex]) -> list[int]:
    """Token ids of any integer type."""
    return [index(value) for value in values]


def _member(name: str, enum: Any, value: Any) -> Any:
    if isinstance(value, str) and value in enum.__members__:
        return enum.__members__[value]
    raise usage(f"{name}: expected one of {', '.join(enum.__members__)}, found {value!r:.60}")


def _native(name: str, value: Any) -> Any:
    """The value as the module beneath takes it."""
    if isinstance(value, (str, bytes)) and name != "acceptance":
        if name == "stop" and isinstance(value, str):
            return [value]
        raise TypeError
    if name == "stop":
        return list(value)
    if name in _IDS:
        return ids_of(value)
    if name == "acceptance" and value is not None:
        return _member(name, _foresay.Acceptance, value)
    if name == "order":
        return [_member(name, _foresay.SamplingStep, step) for step in value]
    if name == "bad_words":
        return [ids_of(word) for word in value]
    if name == "logit_bias":
        return dict(value)
    if isinstance(value, bool) != (name == "ignore_eos"):
        raise TypeError
    return value


def request_of(options: Mapping[str, Any]) -> _foresay.Request:
    """A request without a prompt. Raises Error (usage) naming an option that is unknown or has the wrong type."""
    request = _foresay.Request()
    for name, value in options.items():
        if name not in _KNOWN:
            raise usage(f"{name}: expected an option of a generation, found none of this name")
        try:
            setattr(request if name in _REQUEST else request.sampling, name, _native(name, value))
        except (TypeError, ValueError, OverflowError):
            expected = Options.__annotations__[name].__forward_arg__  # as it is written above
            raise usage(f"{name}: expected {expected}, found {value!r:.60}") from None
    return request


def validate(**options: Any) -> None:
    """Checks options without a model. Raises Error (usage) naming the first one that cannot be honoured."""
    request = request_of(options)
    request.ids = [0]  # any prompt
    _foresay.validate(request)
