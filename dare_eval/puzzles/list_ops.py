"""List operations for the stress test of parallel decoding (after ParallelBench, arXiv 2510.04767).

A model that writes one token at a time answers each of them; tokens written in one step cannot see one another, and
then items repeat or vanish. Operations with one answer: copy, reverse, replace, insert, remove, waiting_line. Free
operations, with many right answers that each need agreement among positions: shuffle, and replace, insert or remove
at a place of the model's choice. Tasks are drawn with a seed by rank among all ordered selections of the vocabulary;
the rank decides the split, so no list of the test occurs in training, and nothing is drawn by rejection.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dare_eval.errors import UsageError, unknown

NAMES = (
    "Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ivan", "Jane", "Kim", "Leo", "Mia", "Nora", "Omar",
    "Pia", "Quin", "Rosa", "Sam", "Tess",
)  # fmt: skip
OPERATIONS = ("copy", "reverse", "replace", "insert", "remove", "shuffle", "waiting_line")
FREE_OPERATIONS = ("shuffle", "replace_any", "insert_any", "remove_any")
ALL_OPERATIONS = (*OPERATIONS, *FREE_OPERATIONS[1:])
LENGTHS = (4, 6)
"""Fewest and most items of a list."""
SPLITS = {"test": (0,), "validation": (1,), "train": tuple(range(2, 10))}
"""Last digits of the ranks that belong to a split."""


@dataclass(frozen=True, slots=True)
class ListTask:
    """One task: the operation, the list, its arguments, and the answer (None for a free operation).

    ``old`` and ``new`` are items: the one that is replaced or removed, or after which is inserted; the one that comes
    in. ``events`` are those of a waiting line: an item joins at the end, ``served`` lets the first one go.
    """

    operation: str
    items: tuple[str, ...]
    old: str = ""
    new: str = ""
    events: tuple[str, ...] = ()
    answer: tuple[str, ...] | None = None

    def accepts(self, given: Sequence[str]) -> bool:
        """Tell whether a list is a right answer."""
        given = tuple(given)
        if self.answer is not None:
            return given == self.answer
        return _FREE[self.operation](self, given)

    def vocabulary(self) -> frozenset[str]:
        """Return every item the task mentions."""
        return frozenset((*self.items, *self.events, self.old, self.new)) - {"", SERVED}

    def to_dict(self) -> dict[str, Any]:
        """Return the task as JSON-ready data, which is the scorer's reference."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items() if value}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ListTask:
        """Read a task back; raises ``KeyError`` or ``ValueError`` for data that is none."""
        operation, items = data["operation"], tuple(data["items"])
        if operation not in ALL_OPERATIONS or not items:
            raise ValueError(f"no list task: {operation}")
        events = tuple(data.get("events", ()))
        return _answered(cls(operation, items, data.get("old", ""), data.get("new", ""), events))


SERVED = "served"


def _replaced(task: ListTask) -> tuple[str, ...]:
    return tuple(task.new if item == task.old else item for item in task.items)


def _inserted(task: ListTask) -> tuple[str, ...]:
    at = task.items.index(task.old) + 1
    return (*task.items[:at], task.new, *task.items[at:])


def _served(task: ListTask) -> tuple[str, ...]:
    line = list(task.items)
    for event in task.events:
        if event == SERVED:
            line.pop(0)
        else:
            line.append(event)
    return tuple(line)


_FIXED: dict[str, Callable[[ListTask], tuple[str, ...]]] = {
    "copy": lambda task: task.items,
    "reverse": lambda task: task.items[::-1],
    "replace": _replaced,
    "insert": _inserted,
    "remove": lambda task: tuple(item for item in task.items if item != task.old),
    "waiting_line": _served,
}


def _one_replaced(task: ListTask, given: tuple[str, ...]) -> bool:
    changed = [b for a, b in zip(task.items, given, strict=False) if a != b]
    return len(given) == len(task.items) and changed == [task.new]


def _one_dropped(long: tuple[str, ...], short: tuple[str, ...]) -> list[str]:
    """Return the items of ``long`` whose removal at some place leaves ``short``."""
    return [long[at] for at in range(len(long)) if long[:at] + long[at + 1 :] == short]


_FREE: dict[str, Callable[[ListTask, tuple[str, ...]], bool]] = {
    "shuffle": lambda task, given: Counter(given) == Counter(task.items) and given != task.items,
    "replace_any": _one_replaced,
    "insert_any": lambda task, given: task.new in _one_dropped(given, task.items),
    "remove_any": lambda task, given: bool(_one_dropped(task.items, given)),
}


def _answered(task: ListTask) -> ListTask:
    if task.operation not in _FIXED:
        return task
    return ListTask(task.operation, task.items, task.old, task.new, task.events, _FIXED[task.operation](task))


def generate(
    split: str, count: int, *, seed: int = 0, operations: Sequence[str] = OPERATIONS, lengths: tuple[int, int] = LENGTHS
) -> list[ListTask]:
    """Return ``count`` tasks, the operations in turn, lengths uniform in ``lengths`` (both ends included).

    Raises ``UsageError`` for an unknown split or operation, and for more tasks than there are lists.
    """
    if split not in SPLITS:
        raise unknown("list_ops split", split, SPLITS)
    for name in operations:
        if name not in ALL_OPERATIONS:
            raise unknown("list operation", name, ALL_OPERATIONS)
    if not 2 <= lengths[0] <= lengths[1] <= len(NAMES) - 4:
        raise UsageError("list lengths out of range", seen=lengths, allowed=f"2 to {len(NAMES) - 4}")
    rng = random.Random(f"list_ops:{split}:{seed}")
    wanted = [rng.randint(*lengths) for _ in range(count)]
    lists = {length: _lists(split, length, wanted.count(length), rng) for length in sorted(set(wanted))}
    return [_task(operations[index % len(operations)], lists[length].pop(), rng) for index, length in enumerate(wanted)]


def _lists(split: str, length: int, count: int, rng: random.Random) -> list[tuple[str, ...]]:
    total = math.perm(len(NAMES), length)
    digits = SPLITS[split]
    ranks = range(total // 10 * len(digits))
    if count > len(ranks):
        raise UsageError(f"there are only {len(ranks)} lists of {length} items in this split", seen=count)
    chosen = rng.sample(ranks, count)
    return [_unrank(rank // len(digits) * 10 + digits[rank % len(digits)], length) for rank in chosen]


def _unrank(rank: int, length: int) -> tuple[str, ...]:
    """Return the ordered selection with number ``rank``; neighbouring ranks differ in the first items."""
    left, picked = list(NAMES), []
    for _ in range(length):
        rank, at = divmod(rank, len(left))
        picked.append(left.pop(at))
    return tuple(picked)


def _task(operation: str, items: tuple[str, ...], rng: random.Random) -> ListTask:
    outside = [name for name in NAMES if name not in items]
    rng.shuffle(outside)
    old = rng.choice(items) if operation in ("replace", "insert", "remove") else ""
    new = outside[0] if operation.startswith(("replace", "insert")) else ""
    events: tuple[str, ...] = ()
    if operation == "waiting_line":
        joins = rng.randint(1, 2)
        drawn = [SERVED] * rng.randint(1, 2) + outside[:joins]
        rng.shuffle(drawn)
        events = tuple(drawn)
    return _answered(ListTask(operation, items, old, new, events))


def one_answer(task: ListTask, rng: random.Random) -> tuple[str, ...]:
    """Return a right answer, drawn by ``rng`` where there are several (for demonstrations)."""
    if task.answer is not None:
        return task.answer
    at = rng.randrange(len(task.items))
    if task.operation == "shuffle":
        return _unrank_shuffle(task.items, rng.randrange(1, math.factorial(len(task.items))))
    if task.operation == "replace_any":
        return (*task.items[:at], task.new, *task.items[at + 1 :])
    if task.operation == "insert_any":
        at = rng.randrange(len(task.items) + 1)
        return (*task.items[:at], task.new, *task.items[at:])
    return task.items[:at] + task.items[at + 1 :]


def _unrank_shuffle(items: tuple[str, ...], rank: int) -> tuple[str, ...]:
    """Return the permutation of ``items`` with number ``rank``; 0 is the order as it stands."""
    left, picked = list(items), []
    for size in range(len(items), 0, -1):
        at, rank = divmod(rank, math.factorial(size - 1))
        picked.append(left.pop(at))
    return tuple(picked)
