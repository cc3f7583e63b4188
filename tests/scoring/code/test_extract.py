"""Extraction rules: which piece of a reply is the program, which rule name is stored, and that none raises."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dare_eval.errors import UsageError
from dare_eval.scoring.code.extract import extract

PROMPT = (
    "from typing import List\nimport math\n\nLIMIT = 3\n\ndef helper(x):\n    return math.floor(x)\n\n\n"
    'def add_all(xs: List[int]) -> int:\n    """Return the sum.\n    >>> add_all([1, 2])\n    3\n    """\n'
)
RIGHT = "def add_all(xs):\n    return sum(xs)"


def value(response: str, prompt: str = PROMPT, name: str = "add_all", argument=(1, 2), mode: str = "auto"):
    """Return what the extracted function answers, and the rule; this module's own texts are the only ones executed."""
    found = extract(response, prompt, [name], mode=mode)
    names: dict = {"__name__": "program"}
    exec(found.code or "", names)
    return names[name](list(argument)), found.rule


@pytest.mark.parametrize(
    ("response", "rule"),
    [
        (f"Sure:\n```python\n{RIGHT}\n```\nDone.", "fence"),
        (f"```\n{RIGHT}\n```", "fence"),
        (f"~~~py\n{RIGHT}\n~~~", "fence"),
        (f"Here it is: ```python\n{RIGHT}\n```", "fence"),
        (f"```python\n{RIGHT}```", "fence"),
        (f"````python\n{RIGHT}\n````", "fence"),
        (f"```python title=solution.py\n{RIGHT}\n```", "fence"),
        ("```python def add_all(xs):\n    return sum(xs)\n```", "fence"),
        (f"```python\n{RIGHT}", "fence_unclosed"),
        (f"thinking... ```py\nx = 1\n```\nthen\n```python\n{RIGHT}", "fence_unclosed"),
        (f"{RIGHT}\n```\nThis adds.", "fence_prompt_opened"),
        (f"{RIGHT}\n```\nUse:\n```python\nprint(add_all([1]))\n```", "fence_prompt_opened"),
        ("```python\ndef add_all(xs):\n    return 0\n```\nBetter:\n" + f"```python\n{RIGHT}\n```", "fence"),
        (f"```python\n{RIGHT}\n```\n```python\ndef other():\n    return add_all([1])\n```", "fence"),
        (f"```python\n{RIGHT}\n```\n```\ndef add_all(xs):\n    ...\n```", "fence"),
        ("```python\n" + PROMPT + "    return sum(xs)\n```", "fence"),
        (
            'Text\n```python\ndef add_all(xs):\n    """Add.\n\n    ```python\n    add_all([1])\n    ```\n    """\n'
            "    return sum(xs)\n```\nMore",
            "fence_docstring",
        ),
        (f"```python\n{RIGHT}\n<|endoftext|><|endoftext|>\n```", "fence"),
        (f"```python\r\n{RIGHT}\r\n```".replace("\n    ", "\r\n    "), "fence"),
        ("1. Code:\n   ```python\n   def add_all(xs):\n       return sum(xs)\n   ```", "fence+dedent"),
        (f"```python\n{RIGHT}\nThat is all!\n```", "fence+prefix"),
        (f"```python\nThe code:\n{RIGHT}\n```", "fence+from_code"),
        (f"```python\n{RIGHT}\nprint(add_all([1, 2)\n```", "fence+prefix"),
        (f"[BEGIN]\n{RIGHT}\n[DONE]\nNext task", "markers"),
        (f" {RIGHT}\n[DONE]", "marker_prompt_opened+dedent"),
        (f" '{RIGHT}' \n[DONE] \n\n ", "marker_prompt_opened+unquote"),
        (f"[BEGIN]\n '{RIGHT}", "marker_unclosed+unquote"),
        ("[BEGIN]\n```python\n" + RIGHT + "\n```\n[DONE]", "fence"),
        (RIGHT, "bare_text"),
        (f"The answer is below.\n{RIGHT}\n\nIt works, since sum adds.", "bare_text+from_code+prefix"),
        ("    return sum(xs)\n", "bare_text+continues_prompt"),
        ("\n    total = sum(xs)\n    return total\n\nprint(add_all([5]))\n", "bare_text+continues_prompt"),
        ("return sum(xs)", "bare_text+continues_prompt+indent_first"),
        ("total = sum(xs)\n    return total", "bare_text+continues_prompt+indent_first"),
        ("total = sum(xs)\nreturn total", "bare_text+continues_prompt+indent"),
        ("```python\n    return sum(xs)\n```", "fence+continues_prompt"),
        ("    return sum(xs)\n```\nexplanation", "bare_text+continues_prompt"),
        ("```python\nadd_all = lambda xs: sum(xs)\n```", "fence"),
        ("```python def add_all(xs): return sum(xs)```", "fence_one_line"),
        ("```python\nfrom __future__ import annotations\ndef add_all(xs: int):\n    return sum(xs)\n```", "fence"),
        ("```python\nif True:\n    def add_all(xs):\n        return sum(xs)\n```", "fence"),
    ],
)  # fmt: skip
def test_right_program_is_found(response, rule):
    assert value(response) == (3, rule)


def test_prompt_helpers_and_imports_stay_available():
    reply = "```python\ndef add_all(xs: List[int]) -> int:\n    return helper(sum(xs)) + LIMIT - math.trunc(3.9)\n```"
    assert value(reply) == (3, "fence")


@pytest.mark.parametrize(
    "prompt",
    [
        "Complete the following python code:\n" + PROMPT,
        "You are a coder.\n```python\n" + PROMPT + "```\nWrite the body.",
        "Task. It imports typing.\n\n" + PROMPT,
    ],
)
def test_code_inside_a_chat_prompt_is_read_like_a_bare_one(prompt):
    reply = "```python\ndef add_all(xs: List[int]) -> int:\n    return helper(sum(xs))\n```"
    assert value(reply, prompt)[0] == 3
    assert value("    return helper(sum(xs))", prompt)[0] == 3


def test_few_shot_code_that_runs_is_not_taken_over():
    prompt = "def first(x):\n    return x\n\nprint(first(1))\nassert first(2) == 2\n\n" + PROMPT
    found = extract(RIGHT, prompt, ["add_all"])
    assert "print(" not in found.preamble
    assert "assert" not in found.preamble
    assert "def first" in found.preamble


def test_only_marker_lines_end_the_code_and_text_is_never_rewritten():
    body = "[BEGIN]\ndef f(x):\n    return 'DONE' if x else r'\\_TODO [DONE] here'\n[DONE]"
    names: dict = {}
    exec(extract(body, "", ["f"]).code, names)
    assert names["f"](1) == "DONE"
    assert names["f"](0) == "\\_TODO [DONE] here"


def test_main_guard_is_kept_and_not_run():
    found = extract(f"```python\n{RIGHT}\nif __name__ == '__main__':\n    raise SystemExit\n```", PROMPT, ["add_all"])
    names: dict = {"__name__": "program"}
    exec(found.code, names)
    assert names["add_all"]([1]) == 1


def test_completion_mode_reads_a_base_model_and_drops_what_it_runs_on_with():
    reply = "    return sum(xs)\n\ndef next_one(y):\n    return y\n\nprint('hello')\nassert add_all([1]) == 2\n"
    found = extract(reply, PROMPT, ["add_all"], mode="completion")
    assert "print" not in found.code
    assert "def next_one" in found.code
    assert value(reply, mode="completion")[0] == 3


@pytest.mark.parametrize(
    "reply", ["", " ", "\n\n", "I cannot do that.", "42", "Yes", "```\n```", "```python", "[DONE]", "\0"]
)
def test_no_code_is_no_answer(reply):
    found = extract(reply, "", ["f"])
    assert found.code is None
    assert found.rule == "no_answer"


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("```python\ndef g(x):\n    return x\n```", "fence+no_entry_point"),
        ("```python\ndef f(x)\n    return x\n```", "fence+not_python"),
    ],
)
def test_a_program_without_the_entry_point_is_still_stored(reply, rule):
    found = extract(reply, "", ["f"])
    assert found.code
    assert found.rule == rule


def test_an_unknown_mode_names_the_nearest():
    with pytest.raises(UsageError, match="completion"):
        extract("x", "", ["f"], mode="completions")


FRAGMENTS = st.sampled_from([
    "```", "```python\n", "\n", "def f(x):\n", "    return x\n", "[BEGIN]\n", "[DONE]\n", "'", '"""', "~~~",
    "import os\n", "<|endoftext|>", "class A:\n", "\t", "\\", "\r\n", "if __name__ == '__main__':\n", "(",
    "[" * 50, "-" * 5000, "#",
    "\0", "\ud800", ">>> ", "@x\n", "from __future__ import annotations\n", "`", "\u00e9", "assert f(1)\n",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=25), st.sampled_from(["", PROMPT]), st.booleans())
def test_extraction_never_raises_and_is_idempotent(parts, prompt, completion):
    reply = "".join(parts)
    mode = "completion" if completion else "auto"
    first = extract(reply, prompt, ["f"], mode=mode)
    assert extract(reply, prompt, ["f"], mode=mode) == first
    assert (first.code is None) == (first.rule == "no_answer")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=" \t\n*#>-abc", max_size=30).filter(lambda t: "```" not in t), st.integers(0, 3))
def test_dressing_around_a_fence_changes_nothing(dressing, blank_lines):
    plain = extract(f"```python\n{RIGHT}\n```", PROMPT, ["add_all"])
    dressed = extract(f"{dressing}\n```python\n{RIGHT}\n```\n" + "\n" * blank_lines, PROMPT, ["add_all"])
    assert dressed.code == plain.code


LONG = [
    "```\n" * 20_000, "def f(x):\n" * 9_000, "[BEGIN]\n[DONE]\n" * 6_000, "(" * 90_000, "x = [\n" * 15_000,
    "a" * 1_000_000,
    "```python\ndef f(x\n```\n" * 4_000, "```python " * 9_000,
]  # fmt: skip


@pytest.mark.parametrize("reply", LONG, ids=range(len(LONG)))
def test_long_replies_end(reply):
    assert extract(reply, PROMPT, ["f"]).rule
