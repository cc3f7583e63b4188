"""Differences of a published table as rows of texts: which are more than noise, which are below trivial answers."""

from __future__ import annotations

from dare_eval.report.published import PublishedDifference

PUBLISHED_COLUMNS = ("Benchmark", "Algorithm", "Score, %", "Base, %", "Difference, points", "p (Holm)", "Verdict")


def published_row(one: PublishedDifference, decimals: int) -> tuple[str, ...]:
    """Return one difference with its interval, adjusted p and verdict; scores with the source's ``decimals``."""
    bounds = "" if one.low is None or one.high is None else f" [{one.low:+.1f}, {one.high:+.1f}]"
    return (
        one.benchmark if one.n is None else f"{one.benchmark} (n {one.n:,})",
        one.column,
        f"{one.score:.{decimals}f}",
        f"{one.base:.{decimals}f}",
        f"{one.delta:+.1f}{bounds}",
        "-" if one.p_holm is None else f"{one.p_holm:.2g}",
        _verdict(one),
    )


def _verdict(one: PublishedDifference) -> str:
    if one.outside is None:
        words = "number of items unknown"
    elif one.depends:
        words = "depends on the number of items"
    elif one.outside:
        words = "better" if one.delta > 0 else "worse"
    else:
        words = "within noise"
    return words + "".join(f"; below {name}" for name in one.below)
