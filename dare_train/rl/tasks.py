"""Tasks: how a row of a source becomes a problem, that is a prompt, a reference and the scorer that judges answers.

Built in are the two puzzles (their generators, or files with the same columns), GSM8K, MATH, and code in the manner
of HumanEval (``test``) and MBPP (``test_list``). Rows in verl's layout (``prompt`` as messages, ``reward_model``,
``extra_info``) are read for every task. An outside package adds a task through the entry points ``dare.tasks``:
a function from a record and a wording to an ``Asked``. Leaves out tokens (``dare_train.rl.problems``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dare_eval.errors import DataError
from dare_eval.puzzles import prompts
from dare_eval.registry import Registry
from dare_eval.scoring import boxes

Record = Mapping[str, Any]
PLAIN = "plain"

_MATH = "{problem}\nPlease reason step by step, and put your final answer within \\boxed{{}}."
_GSM8K = "Question: {question}\nLet's think step by step\nAnswer:"
_COMPLETE = "Complete the following python code:\n{prompt}"
_PROGRAM = "Write Python code for the following task: {text}\nThe code has to satisfy these tests:\n\n{tests}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One problem before it is tokenised."""

    turns: tuple[Mapping[str, str], ...]
    """Messages {role, content}; the last is the user's."""
    scorer: str
    reference: Any
    context: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the scorer."""
    key: str = ""
    """Name of the problem where its source has one."""
    prefix: str = ""
    """What the reply starts with; the model goes on from there."""


Task = Callable[[Record, str | prompts.Prompt], Asked]


def countdown(record: Record, style: str | prompts.Prompt) -> Asked:
    """Numbers and a target: ``numbers`` and ``target``, or verl's ``extra_info.numbers`` and ``ground_truth``."""
    given = _verl(record)
    numbers = [int(number) for number in _parsed(_need(given, "numbers"))]
    target = int(given["ground_truth"] if "ground_truth" in given and "target" not in given else _need(given, "target"))
    turns, prefix = _puzzle_turns(given, prompts.countdown_prompt(numbers, target, style))
    reference = {"numbers": numbers, "target": target}
    return Asked(turns=turns, scorer="countdown", reference=reference, key=_key(record), prefix=prefix)


def sudoku(record: Record, style: str | prompts.Prompt) -> Asked:
    """A 4x4 grid: ``puzzle`` (0 empty) and ``solution``."""
    given = _verl(record)
    puzzle, solution = str(_need(given, "puzzle")), str(given.get("solution") or given.get("ground_truth") or "")
    turns, prefix = _puzzle_turns(given, prompts.sudoku_prompt(puzzle, style))
    reference = {"puzzle": puzzle, "solution": solution}
    return Asked(turns=turns, scorer="sudoku", reference=reference, key=_key(record), prefix=prefix)


def gsm8k(record: Record, style: str | prompts.Prompt) -> Asked:
    """``question`` and ``answer`` (a number, or a worked answer that ends in ``#### number``)."""
    given = _verl(record)
    reference = given.get("ground_truth") or _need(given, "answer")
    turns = _turns(given) or _turn(style, _GSM8K, question=_need(given, "question"))
    return Asked(turns=turns, scorer="gsm8k", reference=reference, key=_key(record))


def math(record: Record, style: str | prompts.Prompt) -> Asked:
    """``problem`` and ``answer``, or a ``solution`` whose last box holds it."""
    given = _verl(record)
    reference = given.get("ground_truth") or given.get("answer") or _last_box(str(_need(given, "solution")))
    turns = _turns(given) or _turn(style, _MATH, problem=_need(given, "problem"))
    return Asked(turns=turns, scorer="math", reference=reference, key=_key(record))


def code(record: Record, style: str | prompts.Prompt) -> Asked:
    """A function to complete (``prompt``, ``test``, ``entry_point``) or to write (``text``, ``test_list``)."""
    given = _verl(record)
    tests = given.get("test_list")
    if tests:
        text = given.get("text") or _need(given, "prompt")
        turns = _turns(given) or _turn(style, _PROGRAM, text=text, tests="\n".join(map(str, tests)))
        context = {key: given[key] for key in ("test_setup_code", "test_imports") if given.get(key)}
        return Asked(turns=turns, scorer="code", reference=list(tests), context=context, key=_key(record))
    start = given.get("prompt")
    turns = _turns(given) or _turn(style, _COMPLETE, prompt=_need(given, "prompt"))
    context = {"entry_point": given.get("entry_point"), "prompt": start if isinstance(start, str) else ""}
    reference = given.get("ground_truth") or _need(given, "test")
    return Asked(turns=turns, scorer="code", reference=reference, context=context, key=_key(record))


TASKS = Registry(
    "task",
    "dare.tasks",
    {name: f"dare_train.rl.tasks:{name}" for name in ("countdown", "sudoku", "gsm8k", "math", "code")},
)


def wording(name: str) -> str | prompts.Prompt:
    """Return the wording that ``data.style`` names: a style of the puzzles, or the text of a file."""
    if name == "auto":
        return PLAIN
    return prompts.from_file(name) if name.endswith(".txt") else name


def _turn(style: str | prompts.Prompt, template: str, **values: Any) -> tuple[Mapping[str, str], ...]:
    if isinstance(style, prompts.Prompt):
        user = style.user
        for name, value in values.items():
            user = user.replace(f"{{{name}}}", str(value))
        system = ({"role": "system", "content": style.system},) if style.system else ()
        return (*system, {"role": "user", "content": user})
    return ({"role": "user", "content": template.format(**values)},)


def _puzzle_turns(given: Record, prompt: prompts.Prompt) -> tuple[tuple[Mapping[str, str], ...], str]:
    """Return the record's own messages, or those of ``prompt`` with the start of the reply."""
    own = _turns(given)
    return (own, "") if own else (({"role": "user", "content": prompt.text},), prompt.prefix)


def _turns(given: Record) -> tuple[Mapping[str, str], ...]:
    """Return the messages of a record that brings its own, without a last turn of the assistant's."""
    found = given.get("prompt")
    if isinstance(found, str) or not isinstance(found, Sequence):
        return ()
    turns = tuple({"role": str(turn["role"]), "content": str(turn["content"])} for turn in found)
    return turns[:-1] if turns and turns[-1]["role"] == "assistant" else turns


def _verl(record: Record) -> dict[str, Any]:
    """Return the record with the nested columns of verl's layout beside its own."""
    flat = dict(record)
    for name in ("extra_info", "reward_model"):
        inner = record.get(name)
        if isinstance(inner, Mapping):
            flat = {**inner, **flat}
    return flat


def _need(given: Record, name: str) -> Any:
    if given.get(name) in (None, ""):
        raise DataError(f"field '{name}' is missing", seen=", ".join(map(str, given)), allowed=f"a field '{name}'")
    return given[name]


def _last_box(solution: str) -> str:
    found = boxes.boxes(solution)
    return found[-1].text if found else solution


def _parsed(value: Any) -> list[Any]:
    try:
        return list(json.loads(value)) if isinstance(value, str) else list(value)
    except (TypeError, ValueError) as error:
        raise DataError("field 'numbers' is no list of numbers", seen=repr(value)[:80]) from error


def _key(record: Record) -> str:
    return str(record.get("id") or record.get("task_id") or "")
