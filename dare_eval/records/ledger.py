"""Fairness ledger: what a run spent, and what was unequal between two runs that are compared.

A better score bought with ten times the rollouts is a different claim from one at equal cost; this file makes the
difference visible. It measures nothing itself: training and evaluation fill in a :class:`Budget`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.records.shapes import NUMBER, check_shape

if TYPE_CHECKING:
    from dare_eval.records.manifest import RunManifest

TOLERANCE = 0.01
"""Relative difference from which two budgets count as unequal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run spent; None means not measured (never read as zero)."""

    prompts: int | None = None
    """Distinct training prompts seen."""
    rollouts: int | None = None
    """Responses sampled for training."""
    rollout_nfe: int | None = None
    """Batched denoiser forwards spent in rollout, summed over rows."""
    rollout_tokens: int | None = None
    """Tokens generated in rollout, padding and EOS excluded."""
    training_forwards: int | None = None
    """Forwards with gradient or for a loss, Monte-Carlo samples counted."""
    training_tokens: int | None = None
    """Tokens that went through training forwards, padding excluded."""
    optimizer_steps: int | None = None
    """Steps of the optimizer."""
    reward_calls: int | None = None
    """Calls of a verifier or reward model."""
    wall_s: float | None = None
    """Wall time in seconds."""
    peak_mem_gib: float | None = None
    """Largest memory of one process or device in GiB."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-ready values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Budget:
        """Return the budget that :meth:`to_dict` stored; entries of other writers are left out."""
        check_shape(record, ((tuple(spec.name for spec in dataclasses.fields(cls)), NUMBER),), "budget")
        known = {spec.name for spec in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})


@dataclass(frozen=True, slots=True)
class Inequality:
    """One budget entry that is not equal in two runs; ``ratio`` is ``b / a`` where both are known and a > 0."""

    name: str
    a: float | None
    b: float | None
    ratio: float | None


def unequal(a: Budget | None, b: Budget | None, *, tolerance: float = TOLERANCE) -> list[Inequality]:
    """Return the entries in which two budgets differ by more than ``tolerance``, or that one side did not measure.

    A missing budget counts as measured nowhere; entries that both sides lack are left out.
    """
    left, right = (a or Budget()).to_dict(), (b or Budget()).to_dict()
    found = []
    for name in left:
        x, y = left[name], right[name]
        if x is None and y is None:
            continue
        if x is None or y is None or abs(x - y) > tolerance * max(abs(x), abs(y)):
            found.append(Inequality(name, x, y, y / x if x and y is not None else None))
    return found


def training_budget(manifest: RunManifest | None, model: str) -> Budget | None:
    """Return what training spent on ``model`` of an evaluation run: from its checkpoint's own manifest.

    None when the model was not trained here, or its folder is gone.
    """
    from dare_eval.errors import DareError
    from dare_eval.records.manifest import read_manifest

    entry = manifest.model(model) if manifest else None
    if entry is None or not entry.model_id:
        return None
    folder = Path(entry.model_id)
    for place in (folder, folder.parent):
        try:
            found = read_manifest(place)
        except DareError:  # no training manifest here; a budget that is not recorded is shown as such
            continue
        if found.kind == "training":
            return found.budget
    return None
