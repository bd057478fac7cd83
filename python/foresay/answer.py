"""What a generation gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stats:
    """What one answer cost and what its drafts were worth."""

    prompt_tokens: int
    generated: int
    passes: int  #: target passes after the prompt; each verified one block
    depth: int  #: effective depth: what drafted, not what was asked for
    drafted: list[int]  #: [depth] blocks that had a draft at this position
    accepted: list[int]  #: [depth] blocks whose draft at this position survived
    prompt_seconds: float
    decode_seconds: float

    @property
    def tokens_per_pass(self) -> float:
        """Tokens per target pass; the first one comes out of the prompt's pass and is not counted."""
        return (self.generated - 1) / self.passes if self.passes and self.generated > 1 else 0.0

    @property
    def decode_tok_s(self) -> float:
        return (self.generated - 1) / self.decode_seconds if self.decode_seconds and self.generated > 1 else 0.0

    @property
    def prompt_tok_s(self) -> float:
        return self.prompt_tokens / self.prompt_seconds if self.prompt_seconds else 0.0


@dataclass(frozen=True)
class TokenLogprobs:
    """Natural logarithms of the model's own probabilities, before penalties, filters and temperature."""

    value: float  #: of the token that was generated
    top: list[tuple[int, float]]  #: (id, value) of the most likely ids, most likely first


@dataclass(frozen=True)
class Answer:
    """One answer."""

    text: str  #: empty where the checkpoint has no tokenizer
    ids: list[int]  #: what was generated, the ending id included
    prompt_ids: list[int]
    finish_reason: str  #: "stop", "length" or "cancelled"
    seed: int  #: of the noise; drawn where none was given
    stats: Stats
    logprobs: list[TokenLogprobs]  #: one per id where top_logprobs asked for them, else empty
    drafted: bool  #: the MTP head took part
    head_reason: str  #: why the head took part or not
    warning: str  #: empty, or what is wrong with the head: the answer is not affected, its speed is


@dataclass(frozen=True)
class Piece:
    """A part of an answer, as it comes."""

    answer: int  #: the handle of the answer in its batch
    text: str  #: whole characters; often empty
    id: int | None  #: the token that came; None where the end of the answer sets free held-back text


def answer_from(found: dict[str, Any]) -> Answer:
    logprobs = [TokenLogprobs(value, top) for value, top in found["logprobs"]]
    return Answer(**{**found, "stats": Stats(**found["stats"]), "logprobs": logprobs})
