"""The algorithm comparison as rows of texts, for the page and the static snapshot alike."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.data.algorithms import BASE, Duel, Pooled, ledger

SCORE_COLUMNS = ("Algorithm", "Score, %", "95 %", "n", "Seeds")
DUEL_COLUMNS = ("Second minus first", "Difference, points", "95 %", "p (Holm)", "Won / lost", "Verdict")
LEDGER_COLUMN = "Over algorithms"


def score_rows(rows: Sequence[Pooled]) -> list[tuple[str, ...]]:
    """Return each algorithm's score, interval, items and the scores of its seeds."""
    return [
        (
            row.algorithm,
            f"{row.value:.1f}",
            f"{row.low:.1f}–{row.high:.1f}",  # noqa: RUF001
            f"{row.n:,}",
            ", ".join(f"{value:.1f}" for value in row.seed_values) if len(row.cells) > 1 else "one",
        )
        for row in rows
    ]


def duel_rows(duels: Sequence[Duel]) -> list[tuple[str, ...]]:
    """Return each pair's difference with what may be said about it."""
    return [_duel(duel) for duel in duels]


def ledger_rows(rows: Sequence[Pooled]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the trained algorithms' names and a line per budget entry with its values and whether they are equal."""
    names = [row.algorithm for row in rows if row.algorithm != BASE]
    lines = [
        (
            line.name.replace("_", " "),
            *["not recorded" if value is None else _amount(value) for value in line.values],
            "unequal" if line.unequal else "equal",
        )
        for line in ledger(rows)
    ]
    return names, lines


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _duel(duel: Duel) -> tuple[str, ...]:
    name = f"{duel.b} minus {duel.a}"
    if duel.test is None or duel.p_holm is None:
        return name, "-", "-", "-", "-", f"not comparable: {duel.refused}"
    test = duel.test
    verdict = f"{duel.winner} better" if duel.winner else "within noise"
    if duel.below_floor:
        verdict = f"within the noise floor ({duel.floor:.1f} % of items)"
    low, high = 100 * test.low, 100 * test.high
    return (
        name,
        f"{100 * test.delta:+.1f}",
        f"{low:+.1f} to {high:+.1f}",
        f"{duel.p_holm:.2g}",
        f"{test.wins} / {test.losses}",
        verdict,
    )
