"""What cannot be honoured is refused by name."""

import math

import pytest
from conftest import MODEL, PROMPT

import foresay

OPTIONS = [
    ("max_tokens", 0), ("max_tokens", 1 << 40), ("max_tokens", 2.5), ("max_tokens", "many"), ("max_tokens", True),
    ("min_tokens", -1), ("min_tokens", 300), ("depth", -1), ("depth", 9), ("depth", None), ("draft_vocabulary", -2),
    ("draft_vocabulary", 1.5), ("stop", ""), ("stop", 3),
    ("stop", ["a", ""]), ("stop", "\ud800"), ("stop_ids", [-1]), ("stop_ids", ["a"]), ("ignore_eos", 1), ("n", 0),
    ("n", 5000), ("top_logprobs", -1), ("temperature", math.nan), ("temperature", math.inf), ("temperature", -1),
    ("temperature", "warm"), ("temperature", None), ("top_k", -1), ("top_k", 1.5), ("top_p", 0), ("top_p", math.nan),
    ("min_p", 1), ("min_keep", 0), ("xtc_probability", 2), ("xtc_threshold", math.nan), ("xtc_exempt", 1),
    ("repetition_penalty", 0), ("presence_penalty", math.nan), ("frequency_penalty", 1000), ("repetition_window", -1),
    ("presence_window", -1), ("frequency_window", -1), ("logit_bias", {1: math.nan}), ("logit_bias", [1]),
    ("logit_bias", {-1: 1.0}), ("bad_words", [[]]), ("bad_words", [1]), ("order", ["top_p"]), ("order", ["heat"]),
    ("seed", -1), ("seed", 1 << 64), ("seed", 1.0), ("choice", -1), ("acceptance", "always"), ("acceptance", 1),
    ("unknown", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), OPTIONS)
def test_options_are_refused_by_name_without_a_model(name, value):
    with pytest.raises(foresay.Error, match=f"^{name}: expected .* found ") as caught:
        foresay.validate(**{name: value})
    assert caught.value.code == "usage"


def test_the_same_where_they_are_used(model):
    foresay.validate(max_tokens=5, temperature=1, seed=3, acceptance=None, top_logprobs=None)
    for call in (model.generate, model.stream, model.batch().add, lambda p, **o: model.generate_many([p], **o)):
        with pytest.raises(foresay.Error, match="^top_p: expected a number in "):
            call(PROMPT, top_p=math.nan)
    for call in (model.generate, model.stream):
        with pytest.raises(foresay.Error, match="^n: expected 1, found 2"):
            call(PROMPT, n=2)


@pytest.mark.parametrize(
    "prompt", ["", [], [-1], [1.5], ["text"], [{"role": "user", "content": "x"}, 1], 7, None, "\ud800", [1 << 40]]
)
def test_prompts_are_refused(model, prompt):
    with pytest.raises(foresay.Error, match="^(prompt|ids): expected ") as caught:
        model.generate(prompt)
    assert caught.value.code == "usage"


def test_what_only_the_model_knows(model):
    with pytest.raises(foresay.Error, match="1048576 is outside the vocabulary"):
        model.generate([1 << 20])
    with pytest.raises(foresay.Error, match="context"):
        model.generate([1] * model.context)
    with pytest.raises(foresay.Error, match="^ids: expected"):
        model.decode([-1])
    with pytest.raises(foresay.Error, match="^ids: expected"):
        model.decode(["a"])
    with pytest.raises(foresay.Error, match="^text: expected"):
        model.encode(b"bytes")
    with pytest.raises(foresay.Error, match="^prompts: expected"):
        model.generate_many("one prompt")
    with pytest.raises(foresay.Error, match="^messages: expected"):
        model.chat_prompt([{"role": "user", "content": object()}])
    with pytest.raises(foresay.Error, match="^handle: expected"):
        model.batch().take(0)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"mtp": "yes"}, "mtp"), ({"mtp": None}, "mtp"), ({"lane": "tpu"}, "lane"), ({"device": 1}, "device"), ({"threads": -1}, "threads"), ({"threads": 5000}, "threads"),
     ({"threads": 1.5}, "threads"), ({"prefill_chunk": -1}, "prefill_chunk")],
)  # fmt: skip
def test_load_options_are_refused_before_the_folder_is_looked_at(options, name):
    with pytest.raises(foresay.Error, match=f"^{name}: expected") as caught:
        foresay.load("/no/such/folder", **options)
    assert caught.value.code == "usage"


def test_load_errors_have_their_codes(tmp_path):
    with pytest.raises(foresay.Error, match="/no/such/folder") as caught:
        foresay.load("/no/such/folder")
    assert caught.value.code == "usage"
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(foresay.Error, match="config.json") as caught:
        foresay.load(tmp_path)
    assert caught.value.code == "checkpoint"
    assert isinstance(caught.value, RuntimeError) and caught.value.message == str(caught.value)


def test_warnings_are_warnings(tmp_path):
    for file in ("config.json", "model.safetensors"):
        (tmp_path / file).symlink_to(f"{MODEL}/{file}")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.warns(UserWarning, match="tokenizer.json"):
        model = foresay.load(tmp_path)
    assert not model.has_tokenizer
    answer = model.generate([1, 2, 3], max_tokens=4)
    assert len(answer.ids) == 4 and answer.text == ""
    with pytest.raises(foresay.Error, match="tokenizer.json") as caught:
        model.generate("text")
    assert caught.value.code == "checkpoint"
