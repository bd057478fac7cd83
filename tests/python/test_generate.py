"""What the module gives is what the program gives, however it is asked."""

import logging
import pathlib
import sys
import sysconfig

from conftest import MODEL, PROMPT

import foresay


def test_generate_is_the_programs(model, program):
    expected = program(MODEL, "--prompt", PROMPT, "--max-tokens", "40", "--temperature", "0.8", "--seed", "7")
    answer = model.generate(PROMPT, max_tokens=40, temperature=0.8, seed=7)
    assert answer.ids == expected["ids"]
    assert answer.text == expected["text"]
    assert answer.prompt_ids == expected["prompt_ids"]
    assert answer.finish_reason == expected["finish_reason"]
    assert answer.seed == 7
    assert answer.stats.passes == expected["stats"]["passes"]
    assert answer.stats.accepted == expected["stats"]["accepted"]
    assert answer.drafted and answer.warning == ""


def test_ids_and_messages_are_prompts(model, program):
    ids = model.encode(PROMPT)
    expected = program(MODEL, "--prompt-ids", ",".join(map(str, ids)), "--max-tokens", "24")
    assert model.generate(ids, max_tokens=24).ids == expected["ids"]
    assert model.generate(tuple(ids), max_tokens=24).ids == expected["ids"]

    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Größe?"}]
    expected = program(MODEL, "--system", "Be brief.", "--prompt", "Größe?", "--max-tokens", "12")
    assert model.generate(messages, max_tokens=12).ids == expected["ids"]
    assert model.encode(model.chat_prompt(messages)) == expected["prompt_ids"]
    assert model.chat_prompt(messages, add_generation_prompt=False) != model.chat_prompt(messages)


def test_depth_changes_the_passes_and_not_the_answer(model):
    plain = model.generate(PROMPT, max_tokens=32, depth=0, ignore_eos=True)
    deep = model.generate(PROMPT, max_tokens=32, depth=5, ignore_eos=True)
    assert plain.ids == deep.ids
    assert plain.stats.passes == 31 and not plain.drafted
    assert deep.stats.passes < 31
    assert deep.stats.generated == 32 and deep.stats.tokens_per_pass > 1
    assert deep.stats.decode_tok_s > 0 and deep.stats.prompt_tok_s > 0


def test_drafts_from_few_ids_give_the_same_answer(model):
    plain = model.generate(PROMPT, max_tokens=32, ignore_eos=True)
    few = model.generate(PROMPT, max_tokens=32, ignore_eos=True, draft_vocabulary=16)
    assert few.ids == plain.ids
    assert sum(few.stats.accepted) < sum(plain.stats.accepted)


def test_stream_concatenates_to_the_text(model):
    expected = model.generate('print("日本', max_tokens=48, ignore_eos=True)
    stream = model.stream('print("日本', max_tokens=48, ignore_eos=True)
    pieces = list(stream)
    assert len(pieces) > 5
    assert "".join(pieces) == expected.text
    assert stream.answer.ids == expected.ids
    assert stream.answer.finish_reason == "length"
    assert list(stream) == []


def test_a_stream_that_is_left_is_cancelled(model):
    with model.stream(PROMPT, max_tokens=500, ignore_eos=True) as stream:
        text = next(stream) + next(stream)
    assert stream.answer.finish_reason == "cancelled"
    assert 0 < len(stream.answer.ids) < 20
    assert stream.answer.text.startswith(text)
    assert list(stream) == []
    for _ in model.stream(PROMPT, max_tokens=500):
        break  # dropped here
    assert len(model.generate(PROMPT, max_tokens=4).ids) == 4


def test_several_answers_equal_solo_ones(model):
    prompts = [PROMPT, "class Queue:", model.encode("import os"), [{"role": "user", "content": "Hi"}]]
    together = model.generate_many(prompts, max_tokens=20, temperature=0.9, seed=3)
    assert [answer.ids for answer in together] == [
        model.generate(prompt, max_tokens=20, temperature=0.9, seed=3).ids for prompt in prompts
    ]
    choices = model.generate_many([PROMPT], n=3, max_tokens=20, temperature=1.0, seed=3)
    assert [answer.ids for answer in choices] == [
        model.generate(PROMPT, max_tokens=20, temperature=1.0, seed=3, choice=choice).ids for choice in range(3)
    ]
    assert model.generate_many([]) == []


def test_a_batch_takes_and_gives_while_it_runs(model):
    batch = model.batch()
    assert batch.step() is None
    (slow,) = batch.add(PROMPT, max_tokens=50, ignore_eos=True)
    pieces = batch.step()
    (quick,) = batch.add("class Queue:", max_tokens=5, ignore_eos=True)
    while not batch.finished(quick):
        pieces += batch.step()
    assert not batch.finished(slow)
    first = batch.take(quick)
    assert [piece.id for piece in pieces if piece.answer == quick and piece.id is not None] == first.ids
    batch.cancel(slow)
    assert batch.take(slow).finish_reason == "cancelled"


def test_options_reach_the_decoder(model):
    whole = model.generate(PROMPT, max_tokens=24, ignore_eos=True)
    stop = whole.text[5:9]
    cut = model.generate(PROMPT, max_tokens=24, ignore_eos=True, stop=stop)
    assert cut.text == whole.text[: whole.text.index(stop)] and cut.finish_reason == "stop"
    assert model.generate(PROMPT, max_tokens=24, ignore_eos=True, stop=["never there", stop]).text == cut.text
    assert model.generate(PROMPT, max_tokens=24, stop_ids=[whole.ids[0]]).ids == whole.ids[:1]
    assert whole.ids[0] not in model.generate(PROMPT, max_tokens=24, bad_words=[[whole.ids[0]]]).ids
    assert model.generate(PROMPT, max_tokens=4, logit_bias={9: 1000.0}).ids == [9, 9, 9, 9]
    order = ["temperature", "top_k", "xtc", "min_p", "top_p"]
    assert model.generate(PROMPT, max_tokens=4, temperature=0.5, top_p=0.9, order=order, acceptance="ratio", seed=1).ids

    scored = model.generate(PROMPT, max_tokens=4, ignore_eos=True, top_logprobs=2)
    assert [token.top[0][0] for token in scored.logprobs] == scored.ids == whole.ids[:4]
    assert all(token.value == token.top[0][1] >= token.top[1][1] for token in scored.logprobs)
    assert whole.logprobs == []


def test_encode_and_decode(model):
    text = 'def größe(x):\n    return "日本" <|im_end|>'
    ids = model.encode(text)
    assert model.decode(ids, skip_special=False) == text
    assert "<|im_end|>" not in model.decode(ids)


def test_the_wheel_has_the_checkpoint_and_finds_it(program, caplog):
    with caplog.at_level(logging.INFO, logger="foresay"):
        model = foresay.load()
    assert caplog.messages
    assert pathlib.Path(model.folder).is_relative_to(sysconfig.get_path("data"))
    assert program("--prompt", PROMPT, "--max-tokens", "8")["ids"] == model.generate(PROMPT, max_tokens=8).ids
    assert model.family == "qwen3_5" and model.has_head and model.max_depth == 8
    assert "qwen3_5" in repr(model)
    assert pathlib.Path(foresay.__file__).is_relative_to(sys.prefix)
