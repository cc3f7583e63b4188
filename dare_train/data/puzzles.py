"""Training rows of the planning puzzles: the seeded generators of ``dare_eval.puzzles`` in the tiny models' wording.

The rows of a split are the same in every run; evaluation draws its test rows from other splits of the same
generators. A Countdown split has few problems but many presentations: asking for more rows than problems goes
through the problems again, with the numbers in another order and another of the solutions. Leaves out the published
prompt styles: they belong to models that were trained on them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from dare_eval.errors import unknown

PUZZLES = ("sudoku", "countdown", "countdown_pairs", "list_ops")
SUDOKU_ROWS = 20_000
LIST_ROWS = 60_000
LIST_LENGTHS = (4, 4)
LIST_CANVAS = 6
"""Answer tokens of a list operation: the longest list and one EOS; shorter ones are filled with EOS, as LLaDA's are."""


def puzzle_rows(name: str, split: str, count: int | None) -> Iterator[dict[str, str]]:
    """Yield rows {prompt, response}; raises ``UsageError`` for an unknown puzzle or split, or too many rows."""
    if name == "sudoku":
        return _sudoku(split, count or SUDOKU_ROWS)
    if name == "countdown":
        return _countdown(split, count)
    if name == "list_ops":
        return _list_ops(split, count or LIST_ROWS)
    if name == "countdown_pairs":
        return countdown_pairs(split, count)
    raise unknown("puzzle", name, PUZZLES, remedy="data.train = puzzles/sudoku[train:20000]")


def _sudoku(split: str, count: int) -> Iterator[dict[str, str]]:
    from dare_eval.puzzles import prompts, sudoku

    for item in sudoku.generate(split, count):
        yield {"prompt": prompts.sudoku_prompt(item.puzzle, "tiny").text, "response": " ".join(item.solution)}


def _countdown(split: str, count: int | None) -> Iterator[dict[str, str]]:
    from dare_eval.puzzles import countdown, prompts

    items = countdown.generate(split)
    pool = {(tuple(sorted(problem.numbers)), problem.target): problem for problem in countdown.splits()[split]}
    for number in range(count or len(items)):
        passes, place = divmod(number, len(items))
        item = items[place]
        if passes:
            problem = pool[tuple(sorted(item.numbers)), item.target]
            item = countdown.present(problem, random.Random(f"countdown-presentation:{split}:{number}"))
        prompt = prompts.countdown_prompt(item.numbers, item.target, "tiny").text
        yield {"prompt": prompt, "response": item.solution}


def _list_ops(split: str, count: int) -> Iterator[dict[str, str]]:
    from dare_eval.puzzles import list_ops, prompts
    from dare_train.data.tokenizer import EOS

    rng = random.Random(f"list-answers:{split}")
    for task in list_ops.generate(split, count, operations=list_ops.ALL_OPERATIONS, lengths=LIST_LENGTHS):
        answer = list_ops.one_answer(task, rng)
        filled = [*answer, *[EOS] * (LIST_CANVAS - len(answer))]
        yield {"prompt": prompts.list_prompt(task, "tiny").text, "response": " ".join(filled)}


def countdown_pairs(split: str, count: int | None) -> Iterator[dict[str, str]]:
    """Yield pairs of a right answer and one with the same numbers whose value is another one."""
    from dare_eval.puzzles import countdown, prompts

    for number, item in enumerate(countdown.generate(split, count)):
        rng = random.Random(f"countdown-pair:{split}:{number}")
        wrong = _missing_target(item.numbers, item.target, rng)
        prompt = prompts.countdown_prompt(item.numbers, item.target, "tiny").text
        yield {"prompt": prompt, "chosen": item.solution, "rejected": wrong}


def _missing_target(numbers: Sequence[int], target: int, rng: random.Random) -> str:
    from dare_eval.scoring import score

    while True:
        a, b, c = rng.sample(list(numbers), 3)
        answer = f"{a} {rng.choice('+-*')} {b} {rng.choice('+-*')} {c}"
        if not score("countdown", answer, {"numbers": list(numbers), "target": target}).correct:
            return answer
