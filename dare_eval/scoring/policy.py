"""The switches where two readings of an answer are defensible. The defaults are the ones the reports name.

Each switch is documented with its alternatives in ``docs/scoring.md``; a non-default policy goes into the metric's
name (``metric_under``), because it changes scores.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

from dare_eval.errors import UsageError, unknown

_CHOICES = {
    "percent": ("optional", "ratio", "strict"),
    "decimals": ("exact", "rounded"),
    "truncated": ("reject", "accept"),
    "untagged": ("reject", "accept"),
    "boxes": ("last_group", "last", "first"),
    "units": ("optional", "strict"),
    "false_equation": ("reject", "accept"),
    "unary_minus": (False, True),
    "juxtaposition": (False, True),
}
READ_BY = {
    "gsm8k": ("percent", "decimals", "truncated", "boxes"),
    "math": ("percent", "decimals", "truncated", "boxes", "units"),
    "choice": ("truncated",),
    "countdown": ("truncated", "untagged", "false_equation", "unary_minus", "juxtaposition"),
    "sudoku": ("truncated", "untagged"),
    "list_ops": ("truncated",),
}
"""The switches that each kind of scorer reads; the other kinds read none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Reading policy of all kinds; a kind ignores the switches that do not concern it."""

    percent: str = "optional"
    """A percent sign: ``optional`` (50 is 50 %), ``ratio`` (0.5 is 50 % as well), ``strict`` (only 50 % is 50 %)."""
    decimals: str = "exact"
    """``exact`` (0.5 is 1/2, 0.333 is not 1/3) or ``rounded`` (a correctly rounded value of 3+ digits counts)."""
    truncated: str = "reject"
    """A box or answer tag the text ends in: ``reject`` (no answer from it) or ``accept`` (marked in the detail)."""
    untagged: str = "reject"
    """Countdown, Sudoku: an answer somewhere in the prose, outside tag, box and last line."""
    boxes: str = "last_group"
    """Several boxes: ``last_group`` (adjacent ones form a list), ``last`` or ``first``."""
    units: str = "optional"
    """A unit after a number: ``optional`` (12 cm is 12) or ``strict`` (kept in the comparison)."""
    false_equation: str = "reject"
    """Countdown: a right expression followed by a wrong ``= n``."""
    unary_minus: bool = False
    """Countdown: a minus sign before a number or bracket."""
    juxtaposition: bool = False
    """Countdown: ``(3+4)(5)`` as a product."""

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                listed = ", ".join(str(value) for value in allowed)
                raise UsageError(f"policy '{name}' has no such value", seen=getattr(self, name), allowed=listed)

    def changed(self) -> dict[str, Any]:
        """Return the switches that differ from the defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(DEFAULT, name)}


DEFAULT = Policy()


def as_policy(given: Policy | dict[str, Any] | None) -> Policy:
    """Return the policy of a context; raises ``UsageError`` for an unknown switch or value."""
    if given is None:
        return DEFAULT
    if isinstance(given, Policy):
        return given
    return _from_items(tuple(sorted(given.items())))


@lru_cache(maxsize=64)
def _from_items(items: tuple[tuple[str, Any], ...]) -> Policy:
    known = [item.name for item in fields(Policy)]
    for name, _ in items:
        if name not in known:
            raise unknown("policy", name, known)
    return replace(DEFAULT, **dict(items))


def concerning(kind: str | None, given: Policy | dict[str, Any] | None) -> dict[str, Any]:
    """Return the switches of a policy that ``kind`` reads and that differ from the defaults.

    Raises ``UsageError`` for an unknown switch or value.
    """
    changed = as_policy(given).changed()
    return {name: value for name, value in changed.items() if name in READ_BY.get(kind or "", ())}


def metric_under(metric: str, changed: dict[str, Any]) -> str:
    """Return the name of a metric under changed switches, such as ``accuracy (percent=ratio)``."""
    said = ", ".join(f"{name}={value}" for name, value in sorted(changed.items()))
    return f"{metric} ({said})" if said else metric
