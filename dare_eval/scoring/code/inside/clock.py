"""The time a program has left: wall seconds without those in which it only waited for a CPU.

A verdict must not depend on what else the machine does. The kernel knows how long each thread was ready to run and had
no CPU (``run_delay``); that much is not counted, up to ``patience`` times the limit. It is looked up only when the
limit seems to be passed, so programs that end in time cost nothing, and one that sleeps is ended on time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_LEAST_S = 0.001
"""A program with less than this left has used its time up: each look-up under load would else give it a little more."""


class Clock:
    """Counts from its making; ``starved_s`` tells for a wall time how much of it was spent waiting for a CPU."""

    def __init__(
        self, limits: dict[str, Any], starved_s: Callable[[float], float], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit_s: float = limits["wall_s"]
        self._most_s = self._limit_s * limits["patience"]
        self._starved_s, self._now = starved_s, now
        self._started = now()
        self.waited_s = 0.0
        """Seconds that do not count, as far as they were looked up."""

    def wall_s(self) -> float:
        """Return the seconds since the start."""
        return self._now() - self._started

    def left_s(self) -> float:
        """Return the seconds that are left; 0 once the limit is passed."""
        wall_s = self.wall_s()
        if wall_s >= self._limit_s + self.waited_s - _LEAST_S and self.waited_s < self._most_s:
            self.waited_s = min(self._most_s, max(self.waited_s, self._starved_s(wall_s)))
        left_s = self._limit_s + self.waited_s - wall_s
        return left_s if left_s >= _LEAST_S else 0.0
