"""AUP of strategies as rows of texts, for the page and the static snapshot alike."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.data.pareto import Strategy

AREA_COLUMNS = ("Strategy", "AUP", "95 % over items", "Settings kept", "")


def area_rows(found: Sequence[Strategy]) -> list[tuple[str, ...]]:
    """Return the area of every strategy that has one, with interval and how much of the curve it covers."""
    rows: list[tuple[str, ...]] = []
    for one in found:
        area = one.area
        if area is not None:
            known = area.low is not None and area.high is not None
            bounds = f"{area.low:.1f}–{area.high:.1f}" if known else "no common items"  # noqa: RUF001
            loss = "beyond the tolerated loss" if area.beyond else ""
            rows.append((one.name, f"{area.value:.1f}", bounds, f"{area.kept} of {area.points}", loss))
    return rows
