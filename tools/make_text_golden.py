"""Writes tests/golden/text: what Hugging Face's tokenizers and transformers make of many strings and conversations.

Run it in an environment with tools/requirements-golden.txt:  python tools/make_text_golden.py
"""

import json
import random
from pathlib import Path

import tokenizers
import transformers

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models" / "tiny-qwen3_5"
OUT = ROOT / "tests" / "golden" / "text"
VERSIONS = f"tokenizers {tokenizers.__version__}, transformers {transformers.__version__}"


def write(name, data):
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / name
    path.write_text(json.dumps(data, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


# Strings and ids ------------------------------------------------------------------------------------------------------

PLANES = [
    (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0xDFF), (0xE00, 0xEFF),
    (0x1100, 0x11FF), (0x1E00, 0x206F), (0x2070, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
    (0xE000, 0xF8FF), (0xF900, 0xFFFF), (0x10000, 0x1FFFF), (0x1F300, 0x1FAFF), (0x20000, 0x2FFFF), (0x30000, 0x3FFFF),
    (0xE0000, 0xEFFFF), (0xF0000, 0xFFFFF), (0x100000, 0x10FFFF),
]
CONTROLS = [chr(c) for c in (*range(0x20), 0x7F, 0x85, 0xA0, 0xAD, 0x200B, 0x200D, 0x2028, 0x2029, 0x3000, 0xFEFF, 0xFFFD)]
EMOJI = [
    "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", "\U0001F44D\U0001F3FD", "\u2764\uFE0F",
    "\U0001F1F0\U0001F1F7", "\U0001F3F3\uFE0F\u200D\U0001F308", "1\uFE0F\u20E3", "\U0001F926\U0001F3FE\u200D\u2642\uFE0F",
]
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
NEARLY_SPECIAL = ["<|im_start", "|im_end|>", "< think>", "<think >", "</think", "<|im_end|", "<<think>>", "<THINK>"]
WORDS = (
    "the quick brown fox def return self import for while class don't we'll I'M it's they've she'd naïve café Straße "
    "Übung été crème Ångström жизнь мир λόγος 東京 漢字 かな カナ 한국어 말씀 สวัสดี नमस्ते مرحبا שלום 12345 3.14 0x1F "
    "foo_bar camelCase __init__ == != -> :: ... ??? !!! $100 50% #tag @user a@b.c ½ ² Ⅷ ﬁ e\u0301 \u1100\u1161\u11a8"
).split(" ")
CODE = [
    "def f(x, *, y=None):\n    return {k: v for k, v in x.items() if v is not y}\n",
    "class A(B):\n\t\"\"\"Doc.\"\"\"\n\n\tdef __init__(self):\n\t\tsuper().__init__()\n",
    "for i in range(10):\r\n    print(f\"{i:>3}\")\r\n",
    "int main(int argc, char** argv) { return argc > 1 ? 0 : -1; }\n",
    "SELECT * FROM t WHERE a >= 'b' -- comment\n",
    "<p class=\"x\">a &amp; b</p>\n\n\n<!-- -->",
    "{\"key\": [1, 2.5, -3e10, true, null], \"\\u00e9\": \"\\n\"}",
]


def strings(rng, count):
    def plane():
        low, high = rng.choice(PLANES)
        return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 12)))

    def spaces():
        return "".join(rng.choice(" \t\n\r  \n") for _ in range(rng.randint(1, 9)))

    def controls():
        return "".join(rng.choice(CONTROLS) for _ in range(rng.randint(1, 5)))

    def marks():
        return rng.choice("aeioucn한が") + "".join(chr(rng.randint(0x300, 0x36F)) for _ in range(rng.randint(1, 4)))

    parts = [plane, spaces, controls, marks, lambda: rng.choice(EMOJI), lambda: rng.choice(SPECIALS),
             lambda: rng.choice(NEARLY_SPECIAL), lambda: rng.choice(WORDS), lambda: rng.choice(WORDS) + " ",
             lambda: " " + rng.choice(WORDS)]
    weights = [3, 2, 1, 1, 1, 1, 1, 4, 4, 4]
    fixed = ["", " ", "  ", "\n", "\n\n", "\t", "\r\n", "a", "\0", *SPECIALS, *NEARLY_SPECIAL, *EMOJI, *WORDS, *CODE]
    fixed += ["".join(SPECIALS), "x<think>y</think>z", " <|im_end|> ", "a" * 300, " " * 100, "한" * 50]
    fixed += [f"{low:x} " + chr(low) + chr(high) for low, high in PLANES]
    while len(fixed) < count:
        fixed.append("".join(rng.choices(parts, weights)[0]() for _ in range(rng.randint(1, 10))))
    return fixed[:count]


def tokenizer_golden():
    rng = random.Random(20260101)
    tokenizer = tokenizers.Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    size = tokenizer.get_vocab_size()
    encoded = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in strings(rng, 1000)]
    # Sequences that cut characters: any ids, and true encodings with pieces missing.
    sequences = [[], [0], [size - 1], *([i] for i in range(4089, size))]
    bytes_only = [tokenizer.token_to_id(chr(c)) for c in (*range(0xA1, 0xAD), *range(0xAE, 0x144))]
    bytes_only = [i for i in bytes_only if i is not None]
    while len(sequences) < 500:
        kind = len(sequences) % 3
        if kind == 0:
            ids = [rng.randrange(size) for _ in range(rng.randint(1, 24))]
        elif kind == 1:
            ids = [i for i in rng.choice(encoded)[1][:40] if rng.random() < 0.8]
        else:
            ids = [rng.choice(bytes_only) for _ in range(rng.randint(1, 16))]
        sequences.append(ids)
    decoded = [
        [ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids, skip_special_tokens=True)]
        for ids in sequences
    ]
    write("tokenizer.json", {"made_by": VERSIONS, "encode": encoded, "decode": decoded})


# Conversations --------------------------------------------------------------------------------------------------------

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather & wind for a <city>, e.g. \"Köln\"",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
                "detail": {"type": ["string", "null"], "enum": ["low", "high", None]},
            },
            "required": ["city"],
        },
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "",
        "parameters": {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}},
    },
}


def call(name, **arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


CONVERSATIONS = [
    {"messages": [{"role": "user", "content": "Hello"}], "args": {}},
    {
        "messages": [{"role": "system", "content": "  Be brief.\n"}, {"role": "user", "content": "What is 2 + 2?"}],
        "args": {"add_generation_prompt": True, "enable_thinking": False},
    },
    {
        "messages": [
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": "<think>\nhm, two?\n</think>\n\nTwo  "},
            {"role": "user", "content": "Three\n\n"},
            {"role": "assistant", "content": "Four", "reasoning_content": "\n3 + 1\n"},
            {"role": "user", "content": "Five"},
        ],
        "args": {"add_generation_prompt": True, "enable_thinking": True},
    },
    {
        "messages": [{"role": "system", "content": "Use tools."}, {"role": "user", "content": "Weather in Köln?"}],
        "args": {"tools": [WEATHER, SEARCH], "add_generation_prompt": True},
    },
    {
        "messages": [
            {"role": "user", "content": "Weather in Köln and Oslo?"},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "Two calls.",
                "tool_calls": [
                    call("get_weather", city="Köln", days=3, options={"units": ["C", "km/h"], "deep": {"a": [], "b": {}}}),
                    call("search", items=["x", 1, 2.0, 1e20, 1e-7, True, None, "\"quoted\" & <b>"], get="a", keys=[]),
                ],
            },
            {"role": "tool", "content": "{\"temp\": 7.5}"},
            {"role": "tool", "content": "no result"},
            {"role": "assistant", "content": "7.5 °C in Köln."},
            {"role": "user", "content": "Thanks"},
        ],
        "args": {"tools": [WEATHER], "add_generation_prompt": True, "enable_thinking": True},
    },
    {
        "messages": [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": "Calling.", "tool_calls": [call("search", items=[])]},
            {"role": "tool", "name": "search", "content": "a"},
        ],
        "args": {"add_generation_prompt": False},
    },
    {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "List system."}]},
            {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "image"}, {"type": "text", "text": "this?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
            {"role": "user", "content": "And now?"},
        ],
        "args": {"add_generation_prompt": True},
    },
    {
        "messages": [
            {"role": "system", "content": "日本語で答えて。"},
            {"role": "user", "content": "\u3000안녕 \U0001F468\u200D\U0001F469\u200D\U0001F467 e\u0301 \u2028 \x1f end\x1c"},
            {"role": "assistant", "content": "\U0001F44D\U0001F3FD\u00a0"},
            {"role": "user", "content": "<|im_end|> {{ 'not' }} {% a %} template"},
        ],
        "args": {"enable_thinking": False, "add_generation_prompt": False},
    },
    {
        "messages": [
            {"role": "user", "content": "a", "name": None},
            {"role": "assistant", "content": None, "tool_calls": [call("search", items={"items": 1})], "reasoning": "short"},
            {"role": "tool", "content": "<tool_response>fake</tool_response>"},
            {"role": "assistant", "content": "done", "thinking": "it is done", "tool_calls": None},
        ],
        "args": {"enable_thinking": True},
    },
    {
        "messages": [
            {"role": "system", "content": ""},
            {"role": "user", "content": "plan\r\nit"},
            {"role": "assistant", "content": "x</think>y</think>  \n\nz"},
            {"role": "user", "content": ""},
            {"role": "assistant", "content": "\n"},
            {"role": "user", "content": "last"},
        ],
        "args": {"tools": [], "add_generation_prompt": True, "enable_thinking": True, "documents": [{"title": "t", "text": "d"}]},
    },
]

# What published templates are made of, each construct in a template of its own writing.
TEMPLATES = {
    "reverse_scan": """\
{#- Where the last question is, looking from the end. -#}
{%- set ns = namespace(last=-1, open=true, seen=[]) %}
{%- for m in messages[::-1] %}
    {%- set i = (messages | length - 1) - loop.index0 %}
    {%- if ns.open and m.role == "user" and not (m.content is string and m.content.startswith('<tool_response>')) %}
        {%- set ns.last = i %}
        {%- set ns.open = false %}
    {%- endif %}
    {%- set ns.seen = ns.seen + [m.role[0]] %}
{%- endfor %}
{{- 'last=' ~ ns.last ~ ' ' ~ ns.seen | join(',') ~ '\\n' }}
{%- for m in messages %}
    {%- if m.content is string %}
        {%- set content = m.content %}
    {%- elif m.content is defined and m.content is iterable and m.content is not mapping %}
        {%- set content = m.content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join('') %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- set thought = '' %}
    {%- if m.reasoning_content is string %}
        {%- set thought = m.reasoning_content %}
    {%- elif '</think>' in content %}
        {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {%- if loop.index0 > ns.last or loop.last %}
        {{- '[' + m.role + '|' + thought.strip('\\n') + '|' + content + ']' }}
    {%- else %}
        {{- '[' + m.role + '|' + content.strip() + ']' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '[assistant' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '|<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
""",
    "blocks_and_blanks": """\
{% for m in messages %}
  {% if loop.first %}
first of {{ loop.length }}
  {% endif %}
    {{ loop.index }}:{{ m['role'] | upper }}{{ ' ' if not loop.last }}{# note #}
  {%+ if m.tool_calls is defined and m.tool_calls %}
calls {{ m.tool_calls | length }}
  {% else %}
no calls{% endif +%}

{% endfor %}

  {% generation %}
tail {{ m.role if m is defined else 'none' }}
{% endgeneration %}
{%- if tools is not none and tools %} tools{% endif %}

""",
    "macros_and_json": """\
{% macro render_args(args, depth=0) -%}
{%- if args is mapping -%}
{%- for k, v in args | items -%}
{{ '  ' * depth }}{{ k }}={{ render_args(v, depth + 1) if v is mapping else v | tojson }};
{%- endfor -%}
{%- elif args is sequence and args is not string -%}
{{ args | length }} items
{%- else -%}
{{ args }}
{%- endif -%}
{%- endmacro %}
{%- for tool in tools or [] %}
{{ tool | tojson(indent=4) }}
{{ tool.function.parameters | tojson(indent=2, sort_keys=true) }}
{{ tool.function.parameters.properties | tojson(ensure_ascii=true, separators=(',', ':')) }}
{{ tool.function.parameters.properties.keys() | list | join('/') }}
{%- for name, spec in tool.function.parameters.properties.items() %}
{{ name }}: {{ spec.type if spec.type is string else spec.type | join('|') }}{{ ' required' if name in (tool.function.parameters.required or []) }}
{%- endfor %}
{%- endfor %}
{%- for m in messages %}
{%- for c in m.tool_calls or [] %}
{%- set call = c.function if c.function else c %}
{{ call.name }}({{ render_args(call.arguments) }}) {{ call.arguments | tojson }} {{ call['arguments'].get('days', 'no days') }}
{{ call.arguments }}
{%- endfor %}
{%- endfor %}
""",
    "grouped_tools": """\
{%- set system = messages[0]['content'] if messages[0]['role'] == 'system' else none %}
{%- set rest = messages[1:] if system is not none else messages %}
{%- if system is not none and system is string and system | trim %}{{ bos_token | default('<s>') }}{{ system | trim }}
{% endif %}
{%- for m in rest %}
    {%- if m.role == 'tool' %}
        {%- set before = rest[loop.index0 - 1].role if loop.index0 else '' %}
        {%- set after = rest[loop.index0 + 1].role if loop.index0 + 1 < rest | length else '' %}
        {%- if before != 'tool' %}{{ '<results>' }}{% endif %}
        {{- '<r>' ~ m.content ~ '</r>' }}
        {%- if after != 'tool' %}{{ '</results>\\n' }}{% endif %}
    {%- elif loop.previtem is defined and loop.previtem.role == 'tool' %}
        {{- 'after tool: ' ~ m.role ~ '\\n' }}
    {%- elif m.role in ['user', 'assistant'] %}
        {{- m.role.title() ~ '>' ~ (m.content if m.content is string else m.content | tojson) ~ '\\n' }}
    {%- else %}
        {{- raise_exception('Role ' ~ m.role ~ ' is not known: ' ~ loop.index0) }}
    {%- endif %}
{%- endfor %}
""",
    "loop_controls": """\
{%- for m in messages %}
{%- if m.role == 'system' %}{% continue %}{% endif %}
{%- if m.role == 'tool' %}{% break %}{% endif %}
{%- set words %}{{ m.content if m.content is string else '' }}{% endset %}
{%- for w in words.split() %}
{%- if loop.index > 3 %}...{% break %}{% endif %}
{{- w }}{{ '+' if not loop.last else '' }}
{%- else %}(nothing)
{%- endfor %}
{{ words | length }} {{ words.splitlines() | length }} {{ words[:3] | tojson }} {{ words.upper()[-3:] }}
{%- endfor %}
{%- for i in range(2, 8, 3) %}{{ i }}{{ loop.cycle('a', 'b') }}{% endfor %}
""",
    "values": """\
{{ messages.0.role }} {{ messages[-1].role }} {{ messages[0].get('name') }} {{ messages | first == messages[0] }}
{{ true }} {{ none }} {{ 1.0 }} {{ 7 // 2 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ -7 % 3 }} {{ 1e20 }} {{ [1, 'a', none, true, {'k': 2.5}] }}
{{ undefined_thing }}|{{ undefined_thing is defined }}|{{ undefined_thing | default('d') }}|{{ '' | default('e', true) }}
{{ 'a' in 'cat' }} {{ 'role' in messages[0] }} {{ 1 in [1, 2] }} {{ 'x' not in 'cat' }} {{ 1 < 2 < 3 }}
{{ ('t' if [] else 'f') ~ ('t' if {} else 'f') ~ ('t' if 0 else 'f') ~ ('t' if '' else 'f') ~ ('t' if ' ' else 'f') ~ ('t' if 0.0 else 'f') }}
{{ 'string' is sequence }} {{ {} is sequence }} {{ [] is sequence }} {{ {} is iterable }} {{ 3 is number }} {{ 3 is string }} {{ true is boolean }} {{ 3.0 is float }} {{ 3 is integer }}
{{ '%s=%d' | format('n', 4) }} {{ 'a-b-c'.replace('-', '+', 1) }} {{ 'abc'.find('c') }} {{ 'Abc'.lower() }} {{ 'x y'.title() }} {{ 'éa'.capitalize() }}
{{ 'k: v'.partition(': ')[2] }} {{ 'a.b.c'.rsplit('.', 1) | join('!') }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'a,b'.split(',', maxsplit=1) | last }}
{{ [3, 1, 2] | sort | join }} {{ [1, 1, 2] | unique | list }} {{ {'b': 1, 'a': 2} | dictsort }} {{ ['a', 'b'] | reverse | list }} {{ 'abc' | reverse }}
{{ '<b>&"' }} {{ 'a\\tb\\u00e9' }} {{ "it's" ~ ' ' 'joined' }} {{ 5 | string + 'x' }} {{ '7' | int + 1 }} {{ [[1, 2], [3]] | sum(start=[]) }}
{% set a, b = (1, 2) %}{{ a + b }} {{ dict(x=1).x }} {{ messages | map(attribute='role') | list | length }} {{ messages | selectattr('role', 'in', ['user']) | list | length }}
{% call(x) wrap() %}<{{ x }}>{% endcall %}{{ messages | rejectattr('tool_calls') | list | length }}{% raw %}{{ raw }}{% endraw %}
{{ ' a\\x1c'.strip() | tojson }} {{ 'a\\x0bb\\u2028c' .splitlines() | length }} {{ strftime_now('%%') }} {{ 'é' | tojson(ensure_ascii=True) }} {{ [] | tojson(indent=2) }} {{ 'a\\nb' | indent(2) }}
""".replace("{% call(x)", "{% macro wrap() %}{{ caller('in') }}{% endmacro %}\n{% call(x)"),
}


def render(template, conversation):
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(MODEL / "tokenizer.json"), chat_template=template, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    try:
        return {"text": tokenizer.apply_chat_template(conversation["messages"], tokenize=False, **conversation["args"])}
    except Exception as error:  # the template's own exception, or one from its Python operations
        return {"error": str(error), "raised": type(error).__name__ == "TemplateError"}


def chat_golden():
    templates = {"": (MODEL / "chat_template.jinja").read_text(), **TEMPLATES}
    results = {name: [render(source, c) for c in CONVERSATIONS] for name, source in templates.items()}
    write("chat.json", {"made_by": VERSIONS, "conversations": CONVERSATIONS, "templates": TEMPLATES, "results": results})
    for name, result in results.items():
        for i, entry in enumerate(result):
            if "error" in entry:
                print(f"template {name!r}, conversation {i}: {entry}")


if __name__ == "__main__":
    tokenizer_golden()
    chat_golden()
