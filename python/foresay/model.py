"""A loaded checkpoint, and answers from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _foresay
from .answer import Answer, Piece, answer_from
from .options import Options, ids_of, request_of, usage

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Text, taken as it is; messages, put through the checkpoint's chat template; or token ids.
Prompt = Union[str, Sequence[Mapping[str, Any]], Sequence[int]]


class Model:
    """A loaded checkpoint. Every method may be called from any thread; a pass over the weights is one call's at a time.

    Methods release the GIL while they compute. Ctrl-C raises KeyboardInterrupt at the end of the pass that runs.
    """

    def __init__(self, native: _foresay.LanguageModel) -> None:
        self._native = native
        for name, value in native.description().items():
            setattr(self, name, value)

    folder: str
    family: str  #: "qwen3_5"
    model_type: str  #: as config.json says
    lane: str  #: what computes: "cpu, 2 threads, avx2"
    context: int  #: most tokens of one sequence, prompt and answer together
    vocab: int  #: rows of the vocabulary matrix
    has_tokenizer: bool  #: False: token ids only
    has_head: bool  #: an MTP head was loaded
    max_depth: int  #: deepest draft the head can make; 0 without a head
    head_reason: str  #: why the head is there or not
    stop_ids: list[int]  #: tokens that end a turn

    def __repr__(self) -> str:
        return f"<foresay.Model {self.folder!r}: {self.family}, {self.lane}, head {'on' if self.has_head else 'off'}>"

    def encode(self, text: str) -> list[int]:
        """Ids of the text, special tokens written in it included; nothing is added."""
        return self._native.encode(_text("text", text))

    def decode(self, ids: Iterable[int], skip_special: bool = True) -> str:
        """Text of the ids; bytes that are no UTF-8 become U+FFFD."""
        try:
            return self._native.decode(ids_of(ids), skip_special)
        except (TypeError, OverflowError):
            raise usage(f"ids: expected token ids, found {ids!r:.60}") from None

    def chat_prompt(self, messages: Sequence[Mapping[str, Any]], **variables: Any) -> str:
        """The prompt that the chat template makes of the messages, ready for an answer.

        ``variables`` are further ones of the template: ``tools``, ``enable_thinking``, ``add_generation_prompt``.
        """
        try:
            return self._native.chat_prompt(
                json.dumps(list(messages), ensure_ascii=False), json.dumps(variables, ensure_ascii=False)
            )
        except (TypeError, UnicodeEncodeError) as error:
            raise usage(f"messages: expected what JSON can hold, found otherwise: {error}") from None

    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> Answer:
        """One answer to its end."""
        if options.get("n", 1) != 1:
            raise usage(f"n: expected 1, found {options['n']!r:.60}; generate_many() gives several answers")
        return self.generate_many([prompt], **options)[0]

    def generate_many(self, prompts: Iterable[Prompt], **options: Unpack[Options]) -> list[Answer]:
        """Answers to all prompts, decoded together, each the one it would be alone; ``n`` for each prompt."""
        if isinstance(prompts, str):
            raise usage(f"prompts: expected several prompts, found the text {prompts!r:.60}")
        batch = self.batch()
        handles = [handle for prompt in prompts for handle in batch.add(prompt, **options)]
        try:
            batch.run()
        except BaseException:
            for handle in handles:  # a traceback may keep the batch for long
                batch.cancel(handle)
            raise
        return [batch.take(handle) for handle in handles]

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream:
        """The answer's text, piece by piece. Options and prompt are checked at once."""
        if options.get("n", 1) != 1:
            raise usage(f"n: expected 1, found {options['n']!r:.60}; Batch gives several answers")
        batch = self.batch()
        return Stream(batch, batch.add(prompt, **options)[0])

    def batch(self) -> Batch:
        """An empty batch over this model."""
        return Batch(self)


class Batch:
    """Several answers decoded together, which may be added while others run. Dropping it drops what still runs."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._native = _foresay.Batch(model._native)

    def add(self, prompt: Prompt, **options: Unpack[Options]) -> list[int]:
        """Takes a prompt in; the handles of its ``n`` answers. Decodes nothing."""
        request = request_of(options)
        if not isinstance(prompt, str) and isinstance(prompt, Iterable):
            prompt = list(prompt)
        if isinstance(prompt, str):
            request.prompt = _text("prompt", prompt)
        elif isinstance(prompt, list) and prompt and all(isinstance(message, Mapping) for message in prompt):
            request.prompt = self._model.chat_prompt(prompt)
        else:
            try:
                request.ids = ids_of(prompt)
            except (TypeError, OverflowError):
                raise usage(f"prompt: expected text, messages or token ids, found {prompt!r:.60}") from None
        first = self._native.add(request)
        return list(range(first, first + request.n))

    def step(self) -> list[Piece] | None:
        """One pass for every answer that runs: what came of it. None when nothing was left to do."""
        running, pieces = self._native.step()
        return [Piece(*piece) for piece in pieces] if running or pieces else None

    def run(self) -> None:
        """Steps until nothing is left to do."""
        while self._native.step()[0]:
            pass

    def finished(self, handle: int) -> bool:
        return self._native.finished(handle)

    def cancel(self, handle: int) -> None:
        """Ends an answer where it is; nothing if it has ended."""
        self._native.cancel(handle)

    def take(self, handle: int) -> Answer:
        """The answer, which the batch then forgets; one that still runs is cancelled."""
        return answer_from(self._native.take(handle))


class Stream(Iterator[str]):
    """Pieces of one answer's text. Leaving the loop early, close() and the end of ``with`` cancel it."""

    def __init__(self, batch: Batch, handle: int) -> None:
        self._batch = batch
        self._handle = handle
        self._ready: list[str] = []
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The answer with its statistics. Cancels one that still runs."""
        if self._answer is None:
            self._answer = self._batch.take(self._handle)
        return self._answer

    def __next__(self) -> str:
        while not self._ready:
            pieces = None if self._answer else self._batch.step()
            if pieces is None:
                _ = self.answer  # raises what ended it
                raise StopIteration
            self._ready = [piece.text for piece in reversed(pieces) if piece.text]
        return self._ready.pop()

    def close(self) -> None:
        self._ready = []
        _ = self.answer

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _text(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise usage(f"{name}: expected text, found {text!r:.60}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise usage(f"{name}: expected text, found a lone surrogate at offset {error.start}") from None
    return text
