"""Countdown with three numbers: every problem that plain + - * solves, listed with all its solutions.

A problem is a multiset of three numbers from 1 to 20 and a target from 1 to 60 that some expression
``a op b op c`` without brackets reaches under the usual precedence: 8,480 problems, 3.8 solutions on average. They
are enumerated, so splits are exact. Division and brackets are left out here on purpose; the scorer accepts them.

Splits, disjoint by (numbers, target): ``test`` 400, ``sft`` 400 (demonstrations), ``rl`` 7,680 (prompts with only
the verifier). ``validation`` is a fixed 400 of the ``rl`` pool and ``rl_tuning`` the other 7,280: settings are chosen
by training on ``sft`` and ``rl_tuning`` and looking at ``validation``; the final run, its settings fixed, may use all
of ``rl``. Extending the numbers or targets instead would have given validation problems whose tokens no training
split contains.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from functools import lru_cache

from dare_eval.errors import UsageError, unknown

NUMBER_RANGE = (1, 20)
TARGET_RANGE = (1, 60)
TEST, DEMONSTRATIONS, VALIDATION = 400, 400, 400
SPLITS = ("test", "sft", "rl", "validation", "rl_tuning")
FORMAT_REWARD = 0.1
"""What the published reward pays any answer inside a closed ``<answer>`` tag; a baseline to print beside scores."""

_OPERATORS = "+-*"


@dataclass(frozen=True, slots=True)
class CountdownProblem:
    """Three numbers in ascending order, the target, and every bracket-free solution, sorted."""

    numbers: tuple[int, int, int]
    target: int
    solutions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CountdownItem:
    """A problem as it is shown: numbers in the order of the prompt, and one solution drawn at random."""

    numbers: tuple[int, int, int]
    target: int
    solution: str


@lru_cache(maxsize=1)
def problems() -> tuple[CountdownProblem, ...]:
    """Return every problem, ordered by numbers and target."""
    low, high = NUMBER_RANGE
    found: list[CountdownProblem] = []
    for numbers in itertools.combinations_with_replacement(range(low, high + 1), 3):
        reached: dict[int, list[str]] = {}
        for order in sorted(set(itertools.permutations(numbers))):
            for first, second in itertools.product(_OPERATORS, repeat=2):
                value = _value(order, first, second)
                if TARGET_RANGE[0] <= value <= TARGET_RANGE[1]:
                    reached.setdefault(value, []).append(f"{order[0]} {first} {order[1]} {second} {order[2]}")
        found += [CountdownProblem(numbers, target, tuple(sorted(reached[target]))) for target in sorted(reached)]
    return tuple(found)


def _value(order: tuple[int, ...], first: str, second: str) -> int:
    a, b, c = order
    if second == "*" and first != "*":
        return a + b * c if first == "+" else a - b * c
    left = {"+": a + b, "-": a - b, "*": a * b}[first]
    return {"+": left + c, "-": left - c, "*": left * c}[second]


@lru_cache(maxsize=8)
def splits(seed: int = 0, demonstrations: int = DEMONSTRATIONS) -> dict[str, tuple[CountdownProblem, ...]]:
    """Return the problems of each split (see the module text); ``demonstrations`` moves problems from rl to sft.

    Raises ``UsageError`` when nothing would be left for ``rl``.
    """
    shuffled = list(problems())
    if not 0 < demonstrations <= len(shuffled) - TEST - VALIDATION:
        most = len(shuffled) - TEST - VALIDATION
        raise UsageError("countdown demonstrations out of range", seen=demonstrations, allowed=f"1 to {most}")
    random.Random(f"countdown-splits:{seed}").shuffle(shuffled)
    test, rest = shuffled[:TEST], shuffled[TEST:]
    # Demonstrations come from the front and validation from the back, so that neither the test nor the validation
    # problems change with the number of demonstrations.
    parts = {
        "test": test,
        "sft": rest[:demonstrations],
        "rl": rest[demonstrations:],
        "validation": rest[-VALIDATION:],
        "rl_tuning": rest[demonstrations:-VALIDATION],
    }
    return {name: tuple(part) for name, part in parts.items()}


def generate(
    split: str,
    count: int | None = None,
    *,
    seed: int = 0,
    split_seed: int = 0,
    demonstrations: int = DEMONSTRATIONS,
) -> list[CountdownItem]:
    """Return the items of a split in random order, ``count`` of them (default: all), each problem once.

    ``seed`` draws the order of problems, the order of numbers inside a prompt and the solution shown as the
    demonstration. Raises ``UsageError`` for an unknown split or more items than it holds.
    """
    parts = splits(split_seed, demonstrations)
    if split not in parts:
        raise unknown("countdown split", split, parts)
    pool = parts[split]
    count = len(pool) if count is None else count
    if not 0 <= count <= len(pool):
        raise UsageError(
            f"countdown split '{split}' holds {len(pool)} problems", seen=count, allowed=f"0 to {len(pool)}"
        )
    rng = random.Random(f"countdown:{split}:{seed}")
    return [present(problem, rng) for problem in rng.sample(pool, count)]


def present(problem: CountdownProblem, rng: random.Random) -> CountdownItem:
    """Return the problem with its numbers shuffled and a solution drawn by ``rng``; call again for another draw."""
    first, second, third = rng.sample(problem.numbers, 3)
    return CountdownItem((first, second, third), problem.target, rng.choice(problem.solutions))
