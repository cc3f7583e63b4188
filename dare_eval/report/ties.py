"""Tie groups instead of ranks: which results of a column cannot be told apart on their items.

Group 1 is the best result and everything that is not significantly worse (paired test, Holm over the tests against
that result); group 2 starts with the best of the rest, and so on. Results that may not be compared with that best one,
because they answer another question (prompt, length, extractor), form a pool with groups of their own. Results without
item records are in no group. Order within a group means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dare_eval.records.compare import ALPHA
from dare_eval.records.significance import holm

REFUSED = "refused"
"""Answer of a test for two results that may not be compared."""
P = float | str | None
"""p of the paired test, :data:`REFUSED`, or None where there is no test."""
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Tie:
    """Where a result stands."""

    pool: int
    """0 is the largest pool; of equally large ones the one with the better best result."""
    group: int
    """From 1; equal numbers in one pool are ties."""
    size: int
    """Results in the group."""


def tie_groups(ordered: Sequence[K], test: Callable[[K, K], P]) -> dict[K, Tie]:
    """Return the tie of each result of ``ordered`` (best first); those that no test reaches are left out.

    A column of one result is a group of one: there is nothing to test.
    """
    if len(ordered) == 1:
        return {ordered[0]: Tie(0, 1, 1)}
    pools: list[list[K]] = []
    waiting = list(ordered)
    while waiting:
        leader, rest = waiting[0], waiting[1:]
        answers = {other: test(leader, other) for other in rest}
        members = [other for other in rest if isinstance(answers[other], float)]
        waiting = [other for other in rest if not isinstance(answers[other], float)]
        if not members and not _tested(leader, ordered, test):
            continue
        pools.append([leader, *members])
    found: dict[K, Tie] = {}
    for number, members in enumerate(sorted(pools, key=len, reverse=True)):
        found |= _groups(members, test, number)
    return found


def _tested(one: K, others: Sequence[K], test: Callable[[K, K], P]) -> bool:
    """Whether ``one`` has items to test at all: another result answered the question, if only with a refusal."""
    return any(test(one, other) is not None for other in others if other != one)


def _groups(members: Sequence[K], test: Callable[[K, K], P], pool: int) -> dict[K, Tie]:
    found: dict[K, Tie] = {}
    rest, group = list(members), 0
    while rest:
        leader, group = rest[0], group + 1
        tested = [(other, p) for other in rest[1:] if isinstance(p := test(leader, other), float)]
        adjusted = dict(zip((o for o, _ in tested), holm([p for _, p in tested]), strict=True)) if tested else {}
        tied = [leader, *[other for other, p in adjusted.items() if p >= ALPHA]]
        found |= dict.fromkeys(tied, Tie(pool, group, len(tied)))
        rest = [other for other in rest if other not in found]
    return found
