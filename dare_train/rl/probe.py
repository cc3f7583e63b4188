"""What one optimizer step of a recipe costs on this machine: a few steps, measured, thrown away.

It is a process of its own, so that what it measures is its own: ``python -m dare_train.rl.probe rl CONFIG.yaml``.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import dare_train.rl.config  # noqa: F401  - makes the verb known

ROLLOUTS = 2
PLAIN_STEPS = 12
CURRENCY_OF = {
    "cpu_seconds": "cpu_s",
    "seconds": "wall_s",
    "rollout_tokens": "rollout_tokens",
    "forwards": "forwards",
    "steps": "steps",
}


def probe(verb: str, path: Path) -> dict[str, float]:
    """Return the mean cost of an optimizer step, and how many steps use one rollout.

    Costs: CPU and wall seconds, row forwards (rollout and training), rollout tokens. The first rollout (or the first
    steps) warms up and is not counted.
    """
    import torch

    from dare_train.algorithms.build import METHODS
    from dare_train.config import VERBS
    from dare_train.engine.loop import train_step
    from dare_train.run import build_state, prepare
    from dare_train.settings import load_config

    config = load_config(VERBS[verb], path)
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    with tempfile.TemporaryDirectory() as place:
        config = config.model_copy(update={"output_dir": place})
        method = METHODS[verb]
        prepared = prepare(config, method)
        algorithm = method.build(prepared)
        state = build_state(prepared, algorithm)
        state.network.train()
        per_rollout = int(getattr(algorithm, "per_rollout", 1))
        warm = per_rollout if verb == "rl" else 3
        count = ROLLOUTS * per_rollout if verb == "rl" else PLAIN_STEPS
        for _ in range(warm):
            train_step(state, config, Path(place))
        spent = dict(getattr(algorithm, "spent", {}))
        forwards, cpu_s, wall_s = state.counters.forwards, time.process_time(), time.perf_counter()
        for _ in range(count):
            train_step(state, config, Path(place))
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
        now = getattr(algorithm, "spent", {})
        rolled = {name: now[name] - spent[name] for name in ("rollout_nfe", "rollout_tokens") if name in now}
        total = {
            "cpu_s": cpu_s,
            "wall_s": wall_s,
            "forwards": state.counters.forwards - forwards + rolled.get("rollout_nfe", 0.0),
            "rollout_tokens": rolled.get("rollout_tokens", 0.0),
            "steps": float(count),
        }
    return {**{name: value / count for name, value in total.items()}, "per_rollout": float(per_rollout)}


def steps_of(costs: dict[str, float], currency: str, amount: float) -> int:
    """Return the optimizer steps that ``amount`` pays for, in whole rollouts, at least one."""
    each = costs[CURRENCY_OF[currency]]
    per_rollout = int(costs["per_rollout"])
    return max(1, round(amount / each / per_rollout)) * per_rollout


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe(sys.argv[1], Path(sys.argv[2]))) + "\n")
