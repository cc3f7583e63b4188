"""The checks that engines and served models share: numbers of things, sampling, and the release that a run names."""

from __future__ import annotations

import math
from typing import Any

from dare_eval.errors import SetupError, UsageError


def check_counts(options: Any, *names: str) -> None:
    """Raise ``UsageError`` for the first option that is no whole number of at least 1."""
    for name in names:
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"option '{name}' is no count", seen=repr(value), allowed=">= 1")


def check_share(options: Any, name: str) -> None:
    """Raise ``UsageError`` for an option that is set and no share of a whole."""
    value = getattr(options, name)
    if value is not None and not (_is_number(value) and 0 < value < 1):
        raise UsageError(f"option '{name}' is out of range", seen=repr(value), allowed="between 0 and 1")


def check_sampling(options: Any) -> None:
    """Raise ``UsageError`` for a ``temperature`` or ``top_p`` that nothing can be sampled with."""
    if not _is_number(options.temperature) or options.temperature < 0:
        raise UsageError("option 'temperature' is out of range", seen=repr(options.temperature), allowed=">= 0")
    if options.top_p is not None and not (_is_number(options.top_p) and 0 < options.top_p <= 1):
        raise UsageError("option 'top_p' is out of range", seen=repr(options.top_p), allowed="(0, 1], or None")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def check_version(engine: str, found: str, wanted: str) -> None:
    """Raise ``SetupError`` when an engine is another release than the run records."""
    if found != wanted:
        raise SetupError(
            f"{engine} is another release than the run names",
            seen=found,
            allowed=wanted,
            remedy=f"install {wanted}; or name it, it is recorded then: engine=dict(version='{found}') in a config, "
            f"--set engine.version={found}, rollout.options.version for rollouts",
        )
