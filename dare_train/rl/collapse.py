"""Tells early that a policy is falling apart: the held-out score drops, entropy is gone, or answers are all alike.

Methods on likelihood bounds tend to collapse late and fast, after their best score; the run goes on, since only its
owner can judge, but says so once per cause and marks the step in the curve.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

LOG = logging.getLogger("dare_train.rl")
SIGMAS = 3.0
ALL_FLAT, LEAST_DISTINCT = 0.999, 1.01


class CollapseWatch:
    """Remembers the best held-out score of a run and what was said already."""

    def __init__(self, *, drop: float, entropy_floor: float) -> None:
        self.drop, self.entropy_floor = drop, entropy_floor
        self.best, self.best_step, self.causes = 0.0, 0, dict[str, int]()

    def heldout(self, step: int, score: float, count: int) -> bool:
        """Take up a held-out score of ``count`` items; returns whether it is a collapse."""
        if score >= self.best:
            self.best, self.best_step = score, step
            return False
        noise = SIGMAS * math.sqrt(max(self.best * (1 - self.best), 0.25 / max(count, 1)) * 2 / max(count, 1))
        fallen = self.best - score > max(self.drop * self.best, noise)
        if fallen:
            self._say("held-out score", step, f"{score:.3f} after {self.best:.3f} at step {self.best_step}")
        return fallen

    def rollout(self, step: int, figures: Mapping[str, float], temperature: float, group_size: int) -> bool:
        """Take up the figures of a rollout; returns whether they show a collapse."""
        entropy = figures.get("entropy")
        if entropy is not None and entropy < self.entropy_floor:
            self._say("entropy", step, f"{entropy:.2g} nat per revealed token")
            return True
        alike = figures.get("distinct", 1.0) * group_size < LEAST_DISTINCT and temperature > 0 and group_size > 1
        if alike and figures.get("exact", 1.0) < ALL_FLAT:
            self._say("diversity", step, "all completions of a prompt are equal, and not all are right")
            return True
        return False

    def _say(self, cause: str, step: int, seen: str) -> None:
        if cause not in self.causes:
            self.causes[cause] = step
            LOG.warning("the policy may be collapsing (%s) at step %d: %s", cause, step, seen)

    def state(self) -> dict[str, Any]:
        """Return what resuming needs."""
        return {"best": self.best, "best_step": self.best_step, "causes": dict(self.causes)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up the state of a checkpoint."""
        self.best, self.best_step = float(state["best"]), int(state["best_step"])
        self.causes = {str(cause): int(step) for cause, step in state["causes"].items()}
