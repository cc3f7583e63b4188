"""Held-out rows judged during training: means with intervals, as one line of the training curve.

The noise of held-out rows is the same at every evaluation, so two evaluations differ by the weights alone. This
watches training; the score that counts comes from the evaluation that follows (``dare_train.then_eval``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from dare_eval.records.intervals import bootstrap
from dare_train.engine.metrics import MetricsFile

if TYPE_CHECKING:
    from dare_train.engine.loop import TrainState

RESAMPLES = 2000


def judge(state: TrainState, metrics: MetricsFile | None, console: Console) -> dict[str, float]:
    """Evaluate the held-out rows, write and show the result; empty when no row is held out."""
    state.network.eval()
    with state.ema.applied(state.network) if state.ema is not None else contextlib.nullcontext():
        values = state.world.gather(state.algorithm.evaluate(state.network))
    state.network.train()
    if not values:
        return {}
    found = summarise(values)
    if metrics is not None:
        metrics.append({"step": state.step, **found})
        console.print(f"after step {state.step}, held out: {shown(found, values)}", highlight=False, soft_wrap=True)
    return found


def summarise(values: Mapping[str, list[float]]) -> dict[str, float]:
    """Return mean and 95 % bootstrap interval of each list, and the number of rows."""
    found: dict[str, float] = {}
    for name, items in values.items():
        interval = bootstrap(items, resamples=RESAMPLES)
        found |= {f"heldout_{name}": interval.value, f"heldout_{name}_low": interval.low}
        found |= {f"heldout_{name}_high": interval.high, "heldout_n": interval.n}
    return found


def shown(found: Mapping[str, float], names: Mapping[str, object]) -> str:
    """Return the summary as one line of text."""
    parts = []
    for name in names:
        value, low, high = (found[f"heldout_{name}{end}"] for end in ("", "_low", "_high"))
        parts.append(f"{name} {value:.4g} [{low:.4g}, {high:.4g}]")
    return ", ".join(parts) + f" (n = {found['heldout_n']:.0f})"
