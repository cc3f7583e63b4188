"""How the planning puzzles are asked: ours in three equivalent wordings, the tiny models', and published formats.

A style fixes what a model sees: system text, user text and the text its reply starts with. ``plain``, ``plain_2`` and
``plain_3`` ask for the same answer in the same tags and differ only in wording (a claim about decoding should rest on
all of them); so do ``d1_eval``, ``d1_eval_2`` and ``d1_eval_3``, which ask for reasoning first. ``d1_train``,
``d1_eval`` and ``spg`` follow the layout of the published prompts (what is asked, which
tags, where the example stands, what the reply starts with) in words of our own; a published wording itself can be
given as a file through ``from_file``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dare_eval.errors import DataError, unknown
from dare_eval.puzzles.list_ops import SERVED, ListTask

EQUIVALENT = ("plain", "plain_2", "plain_3")
"""The styles that differ in wording only."""
EQUIVALENT_GROUPS = (EQUIVALENT, ("d1_eval", "d1_eval_2", "d1_eval_3"))
"""Every set of styles that ask for the same answer in the same form."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; ``prefix`` is text the reply starts with, which the model continues."""

    user: str
    system: str = ""
    prefix: str = ""

    @property
    def text(self) -> str:
        """Return system and user part as one text, for models and data sets without a system role."""
        return f"{self.system}\n\n{self.user}" if self.system else self.user


_SUDOKU_RULES = (
    "A 4x4 Sudoku is given as 16 digits, row by row from the top left; 0 is an empty cell. Fill every empty cell with "
    "a digit from 1 to 4 so that each row, each column and each 2x2 box contains 1, 2, 3 and 4."
)
_SUDOKU_TAGS = (
    "Think inside <reasoning> </reasoning>, then give the 16 digits without spaces inside <answer> </answer>."
)
_SUDOKU_SHOTS = (
    ("0102200013204003", "3142243113244213"),
    ("0010403020001423", "3214413223411423"),
    ("4010130200212000", "4213134234212134"),
)
_SUDOKU: dict[str, Prompt] = {
    "plain": Prompt(
        f"{_SUDOKU_RULES} Give the finished grid as 16 digits inside <answer> </answer> tags.\n\nPuzzle: {{puzzle}}"
    ),
    "plain_2": Prompt(
        "Complete this 4x4 Sudoku.\n{puzzle}\nThe 16 digits are its cells in reading order and 0 marks a cell to fill. "
        "No row, column or 2x2 box may repeat a digit; only 1 to 4 occur. Write all 16 digits of the completed grid "
        "between <answer> and </answer>."
    ),
    "plain_3": Prompt(
        "Sudoku, four by four. Digits 1-4, each exactly once per row, per column and per two-by-two box. Cells are "
        "listed left to right, top to bottom, with 0 for unknown: {puzzle}\nReply with the solved grid as one string "
        "of 16 digits in the form <answer>DIGITS</answer>."
    ),
    "tiny": Prompt("{spaced}"),
    "d1_train": Prompt(f"{_SUDOKU_RULES} {_SUDOKU_TAGS}\n\nSolve the following Sudoku puzzle: {{puzzle}}\n"),
    "d1_eval": Prompt(
        f"{_SUDOKU_RULES} {_SUDOKU_TAGS}\n\nSolve the following Sudoku puzzle: {{puzzle}}\n", prefix="<reasoning>"
    ),
    "d1_eval_2": Prompt(
        "Complete this 4x4 Sudoku: {puzzle}\nThe 16 digits are its cells in reading order and 0 marks a cell to fill. "
        "No row, column or 2x2 box may repeat a digit; only 1 to 4 occur. First reason between <reasoning> and "
        "</reasoning>, then write the 16 digits of the completed grid, without spaces, between <answer> and "
        "</answer>.\n",
        prefix="<reasoning>",
    ),
    "d1_eval_3": Prompt(
        "Sudoku, four by four. Digits 1-4, each exactly once per row, per column and per two-by-two box. Cells are "
        "listed left to right, top to bottom, with 0 for unknown.\n{puzzle}\nReply in the form "
        "<reasoning>STEPS</reasoning> <answer>DIGITS</answer>, where DIGITS is the solved grid as one string of 16 "
        "digits.\n",
        prefix="<reasoning>",
    ),
    "spg": Prompt("Solve this 4x4 Sudoku: {puzzle}\n", system=f"{_SUDOKU_RULES} {_SUDOKU_TAGS}\n\n{{shots}}"),
}

_COUNTDOWN_RULES = (
    "Write one arithmetic expression that uses each of the given numbers exactly once, with the operations +, -, * "
    "and / (and brackets where needed), and that equals the target."
)
_COUNTDOWN_TAGS = "Think inside <reasoning> </reasoning>, then give the expression inside <answer> </answer>."
_COUNTDOWN_EXAMPLE = "Example: for the numbers 2, 3, 4 and the target 5 an answer is <answer>2*4-3</answer>."
_COUNTDOWN_BOXED = "Example: for the numbers 2, 3, 4 and the target 5 an answer is <answer>\\boxed{2*4-3}</answer>."
_COUNTDOWN_TASK = "Numbers: {numbers}\nTarget: {target}"
_COUNTDOWN: dict[str, Prompt] = {
    "plain": Prompt(f"{_COUNTDOWN_RULES} Give it inside <answer> </answer> tags.\n\n{_COUNTDOWN_TASK}"),
    "plain_2": Prompt(
        "Reach {target} from the numbers {numbers}. Every number must appear once and only once; you may add, "
        "subtract, multiply and divide, and use brackets. Put the expression between <answer> and </answer>."
    ),
    "plain_3": Prompt(
        "Countdown game. Combine {numbers} with + - * / and brackets, using all of them and none twice, so that the "
        "result is exactly {target}. Reply in the form <answer>EXPRESSION</answer>."
    ),
    "tiny": Prompt("{spaced} = {target}"),
    "d1_train": Prompt(f"{_COUNTDOWN_RULES} {_COUNTDOWN_TAGS}\n{_COUNTDOWN_EXAMPLE}\n\n{_COUNTDOWN_TASK}\n"),
    "d1_eval": Prompt(
        f"{_COUNTDOWN_RULES} {_COUNTDOWN_TAGS}\n{_COUNTDOWN_BOXED}\n\n{_COUNTDOWN_TASK}\n", prefix="<reasoning>"
    ),
    "d1_eval_2": Prompt(
        "Reach {target} from the numbers {numbers}. Every number must appear once and only once; you may add, "
        "subtract, multiply and divide, and use brackets. First reason between <reasoning> and </reasoning>, then put "
        f"the expression between <answer> and </answer>. {_COUNTDOWN_BOXED}\n",
        prefix="<reasoning>",
    ),
    "d1_eval_3": Prompt(
        f"Countdown game. {_COUNTDOWN_BOXED}\nNow combine {{numbers}} with + - * / and brackets, using all of them and "
        "none twice, so that the result is exactly {target}. Reply in the form <reasoning>STEPS</reasoning> "
        "<answer>EXPRESSION</answer>.\n",
        prefix="<reasoning>",
    ),
    "spg": Prompt(_COUNTDOWN_TASK, system=f"{_COUNTDOWN_RULES} {_COUNTDOWN_TAGS}\n{_COUNTDOWN_EXAMPLE}"),
}

_LIST_SAY = {
    "copy": "Repeat the list as it stands.",
    "reverse": "Write the list in reverse order.",
    "replace": "Replace {old} by {new}.",
    "insert": "Insert {new} right after {old}.",
    "remove": "Remove {old}.",
    "shuffle": "Write the same items in any other order.",
    "replace_any": "Replace one item of your choice by {new}.",
    "insert_any": "Insert {new} at a place of your choice.",
    "remove_any": "Remove one item of your choice.",
    "waiting_line": "The list is a waiting line, first in line first. {events} Write the line as it then stands.",
}
_LIST_OPS: dict[str, Prompt] = {
    "plain": Prompt(
        "{say} Give the resulting list, items separated by commas, inside <answer> </answer> tags.\n\nList: {items}"
    ),
    "plain_2": Prompt(
        "List: {items}\nTask: {say}\nWrite the new list between <answer> and </answer>, with commas between items."
    ),
    "plain_3": Prompt(
        "Take the list [{items}]. {say} Reply in the form <answer>ITEM, ITEM, ...</answer> and nothing else."
    ),
    "tiny": Prompt("{operation} {arguments} : {spaced}"),
}

STYLES = tuple(_SUDOKU)
"""Every style; Sudoku and Countdown have the same ones, list operations ours and ``tiny``."""


def sudoku_prompt(puzzle: str, style: str | Prompt = "plain") -> Prompt:
    """Return the prompt of a 4x4 puzzle (16 characters, 0 empty). Raises ``UsageError`` for an unknown style."""
    shots = "\n\n".join(f"Puzzle: {shot}\n<answer>\n{solved}\n</answer>" for shot, solved in _SUDOKU_SHOTS)
    return _filled(_style(_SUDOKU, style), puzzle=puzzle, spaced=" ".join(puzzle), shots=shots)


def countdown_prompt(numbers: Sequence[int], target: int, style: str | Prompt = "plain") -> Prompt:
    """Return the prompt of a Countdown problem. Raises ``UsageError`` for an unknown style."""
    listed = [str(number) for number in numbers]
    values = {"numbers": ", ".join(listed), "spaced": " ".join(listed), "target": str(target)}
    return _filled(_style(_COUNTDOWN, style), **values)


def list_prompt(task: ListTask, style: str | Prompt = "plain") -> Prompt:
    """Return the prompt of a list operation. Raises ``UsageError`` for an unknown style."""
    told = ("The first one leaves." if event == SERVED else f"{event} joins at the end." for event in task.events)
    arguments = " ".join(part for part in (task.old, task.new, *task.events) if part)
    say = _fill(_LIST_SAY[task.operation], {"old": task.old, "new": task.new, "events": " ".join(told)})
    values = {"say": say, "items": ", ".join(task.items), "spaced": " ".join(task.items), "operation": task.operation}
    prompt = _filled(_style(_LIST_OPS, style), **values, arguments=arguments)
    return replace(prompt, user=prompt.user.replace("  ", " "))


def from_file(path: str | Path) -> Prompt:
    """Read a style from a text file: system part, a line ``---``, user part, optionally ``---`` and the reply's start.

    A file without a ``---`` line is the user part alone. Raises ``DataError`` when the file cannot be read or the
    parts are too many.
    """
    try:
        parts = Path(path).read_text(encoding="utf-8").split("\n---\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("prompt file cannot be read", seen=f"{path}: {error}") from error
    if len(parts) == 1:
        return Prompt(parts[0])
    if len(parts) > 3:
        raise DataError("prompt file has too many parts", seen=len(parts), allowed="system, user, start of the reply")
    return Prompt(parts[1], parts[0], parts[2].rstrip("\n") if len(parts) == 3 else "")


def _style(styles: dict[str, Prompt], style: str | Prompt) -> Prompt:
    if isinstance(style, Prompt):
        return style
    if style not in styles:
        raise unknown("prompt style", style, styles)
    return styles[style]


def _filled(prompt: Prompt, **values: str) -> Prompt:
    return Prompt(*(_fill(part, values) for part in (prompt.user, prompt.system, prompt.prefix)))


def _fill(template: str, values: dict[str, str]) -> str:
    """Replace ``{name}`` for known names only: published prompts hold other braces, such as those of a box."""
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template
