"""What may be said about the difference of two results: the kept paired test, and every setting that differs."""

from __future__ import annotations

from dare_eval.records.column_tests import REFUSED
from dare_eval.records.comparable import compare_settings
from dare_eval.records.compare import ALPHA
from leaderboard.data.board import Board, Cell


def summary(board: Board, a: Cell, b: Cell) -> str:
    """Return ``b`` minus ``a`` in one line, or why there is no such number.

    p stands alone here: nothing else is tested at the same time. A difference within the noise floor is said so.
    """
    test = board.test(a.id, b.id)
    if test is None:
        return "no paired test: item records of one side cannot be read, or their metrics differ"
    if test.method.startswith(REFUSED):
        return f"not comparable: {test.method.removeprefix(REFUSED)}"
    low, high = 100 * test.low, 100 * test.high
    floor = board.floor(a.dataset, {a.weight_hash, b.weight_hash})
    if floor is not None and abs(100 * test.delta) <= floor:
        verdict = f"within the noise floor of {floor:.1f} % of items"
    else:
        verdict = "within noise" if test.p >= ALPHA else "second better" if test.delta > 0 else "first better"
    return (
        f"second minus first: {100 * test.delta:+.1f} points [{low:+.1f}, {high:+.1f}], p {test.p:.2g}, "
        f"won {test.wins}, lost {test.losses} of {test.n} items: {verdict}"
    )


def differing(a: Cell, b: Cell) -> list[str]:
    """Return every setting that differs between two results, those that only concern machine and versions last."""
    found = compare_settings(a.settings, b.settings)
    return [*found.reasons, *found.notes]
