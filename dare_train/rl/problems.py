"""Reads the problems of a task and tokenises their prompts exactly as evaluation renders them.

Problems come from the puzzles' own generators, a local file, or a data set of the hub, through the grammar of
``dare_train.data.spec``. A prompt that is too long or a row without a reference is refused with its index, or
counted. Leaves out answers: there are none to train on.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.errors import DataError, unknown
from dare_train.data.rows import SkippedRows, open_source, selected
from dare_train.data.spec import Selection, parse_sources, separate
from dare_train.data.supply import Memory
from dare_train.reading import TrainingRows
from dare_train.rl.config import TaskSettings
from dare_train.rl.tasks import TASKS, Asked, Task, wording
from dare_train.setup import ModelPlan

SUDOKU_PUZZLES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem that answers are sampled for."""

    prompt: tuple[int, ...]
    text: str
    """The user turn, for people."""
    scorer: str
    reference: Any
    context: Mapping[str, Any]
    key: str
    prefix: str = ""
    """Start of the reply, which stands in the prompt and is judged with the answer."""


def read_problems(plan: ModelPlan, settings: TaskSettings) -> TrainingRows:
    """Return the problems of ``settings``; raises ``DataError`` for bad rows and an empty set."""
    train, held = separate(parse_sources(settings.train))
    skipped = SkippedRows()
    found = {str(item): list(_problems(plan, item, settings, skipped)) for item in train}
    heldout = {str(item): list(_problems(plan, item, settings, skipped)) for item in held}
    problems = [problem for part in found.values() for problem in part]
    if not problems:
        raise DataError(
            "there is no problem to practise", seen=f"{settings.train}: {skipped.reasons}", allowed="at least one"
        )
    record = {
        "sources": {name: len(part) for name, part in found.items()},
        "held_out": {name: len(part) for name, part in heldout.items()},
        "skipped": skipped.reasons,
        "content_hash": problems_hash(problems),
    }
    return TrainingRows(
        supply=lambda seed: Memory(problems, seed, shuffle=settings.shuffle),
        kept=problems,
        heldout=[problem for part in heldout.values() for problem in part],
        record=record,
        row_tokens=sum(len(problem.prompt) for problem in problems) / len(problems),
        answer_tokens=0.0,
    )


def problems_hash(problems: Sequence[Problem]) -> str:
    """Return the SHA-256 over prompts and references, in order: two runs practise the same iff it is equal."""
    digest = hashlib.sha256()
    for problem in problems:
        digest.update(f"{problem.prompt}|{problem.reference!r}\n".encode())
    return digest.hexdigest()


def _problems(plan: ModelPlan, selection: Selection, settings: TaskSettings, skipped: SkippedRows) -> Iterator[Problem]:
    task, style = TASKS.get(settings.task), wording(_style(selection, settings))
    for index, record in selected(selection, whole=True, rows=records(selection)):
        row = {**record, **{own: record.get(theirs) for own, theirs in settings.fields.items()}}
        try:
            yield _problem(plan, _asked(task, row, style), settings, f"{selection}#{index}")
        except DataError as error:
            if settings.on_bad_row == "refuse":
                raise DataError(
                    f"row {index} of {selection} is no problem of task '{settings.task}': {error.what}",
                    seen=error.seen,
                    allowed=error.allowed,
                    remedy="repair the row, name its columns in data.fields, or set data.on_bad_row = skip",
                ) from None
            skipped.add(error.what, (str(selection), index))


def questions(selection: Selection, settings: TaskSettings) -> Iterator[str]:
    """Yield the user turns of a split's problems; rows that are no problem are left out."""
    task, style = TASKS.get(settings.task), wording(_style(selection, settings))
    for _, record in selected(selection, whole=False, rows=records(selection)):
        row = {**record, **{own: record.get(theirs) for own, theirs in settings.fields.items()}}
        with contextlib.suppress(DataError):
            yield str(_asked(task, row, style).turns[-1]["content"])


def _asked(task: Task, row: Mapping[str, Any], style: Any) -> Asked:
    """Return what ``task`` makes of a row; raises ``DataError`` also where a field holds something unexpected."""
    try:
        return task(row, style)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(
            f"a field does not hold what the task expects: {type(error).__name__}: {error}",
            seen=str(dict(row))[:120],
            allowed="the columns of the task (docs/rl.md)",
        ) from error


def _style(selection: Selection, settings: TaskSettings) -> str:
    """Return the wording; a puzzle of the built-in generator is asked as the tiny models know it."""
    return "tiny" if settings.style == "auto" and selection.source.startswith("puzzles/") else settings.style


def _problem(plan: ModelPlan, asked: Asked, settings: TaskSettings, place: str) -> Problem:
    system = ({"role": "system", "content": settings.system},) if settings.system else ()
    turns = [*system, *asked.turns]
    if not plan.tokenizer.chat_template:
        raise DataError("the tokenizer has no chat template", remedy="model.tokenizer = one that has")
    text = str(plan.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)) + asked.prefix
    ids = tuple(plan.tokenizer(text, add_special_tokens=False)["input_ids"])
    if len(ids) > settings.max_prompt:
        raise DataError(
            "the prompt is too long", seen=f"{len(ids)} tokens", allowed=f"data.max_prompt = {settings.max_prompt}"
        )
    return Problem(
        prompt=ids,
        text=str(asked.turns[-1]["content"]),
        scorer=asked.scorer,
        reference=asked.reference,
        context={**asked.context, **settings.context},
        key=asked.key or place,
        prefix=asked.prefix,
    )


def records(selection: Selection) -> Iterator[Mapping[str, Any]]:
    """Yield the raw records of one split: of a puzzle's generator with numbers or grid, else as the source has them."""
    name = selection.source.removeprefix("puzzles/")
    if name == selection.source:
        yield from open_source(selection)
    elif name == "countdown":
        from dare_eval.puzzles import countdown

        for item in countdown.generate(selection.split, selection.count):
            yield {"numbers": list(item.numbers), "target": item.target}
    elif name == "sudoku":
        from dare_eval.puzzles import sudoku

        for grid in sudoku.generate(selection.split, selection.count or SUDOKU_PUZZLES):
            yield {"puzzle": grid.puzzle, "solution": grid.solution}
    else:
        raise unknown("puzzle", name, ("countdown", "sudoku"), remedy="data.train = puzzles/countdown[rl]")
