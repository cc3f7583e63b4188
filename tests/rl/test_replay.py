"""What the update scores is what the rollout saw, and what it holds in memory does not grow with the samples."""

from __future__ import annotations

import pytest
import torch

from dare_eval.decoding import RecordOptions, decode
from dare_eval.spec import DecodeSpec
from dare_train.draws import seeded
from dare_train.rl.trajectory import Trajectory
from tests.rl.made import completions, gradient, network_of, update_for

PROMPTS = [[5, 6, 7, 8, 9, 10, 11], [12, 13, 14], [20, 21, 22, 23]]
SPECS = {
    "masked": {"gen_length": 8, "block_length": 8, "policy": "quota", "steps": 3, "cache": "none"},
    "semi": {"gen_length": 8, "block_length": 4, "policy": "quota", "steps": 4, "cache": "none"},
    "threshold": {"gen_length": 8, "block_length": 8, "policy": "threshold", "threshold": 0.05, "cache": "none"},
    "block": {"gen_length": 8, "block_length": 4, "policy": "quota", "steps": 4, "cache": "block"},
}


def rollouts(net, settings, prompts):
    """Return trajectories and, per response position, log p of its token in the pass that fixed it."""
    spec = DecodeSpec.build(net.config.family, temperature=1.0, **settings)
    rows = decode(net, prompts, spec, row_seeds=[3, 4, 5][: len(prompts)], record=RecordOptions())
    found = []
    for number, (prompt, row) in enumerate(zip(prompts, rows, strict=True)):
        made = Trajectory(
            prompt=tuple(prompt),
            response=tuple(row.response),
            group=0,
            reward=float(number),
            step_map=tuple(row.step_map),
            seed=number,
        )
        trace = row.trace
        logp = torch.full((len(row.response),), torch.nan)
        for step in range(len(trace.steps)):
            fixed = trace.committed_SG[step]
            logp[fixed] = trace.score_SG[step][fixed].log()
        found.append((made, logp))
    return found


@pytest.mark.parametrize("name", SPECS)
def test_replayed_log_probabilities_are_those_of_the_rollout(name):
    kind = "block" if name == "block" else "masked"
    net = network_of(kind).eval()
    prompts = [prompt[: len(prompt) // 4 * 4] for prompt in PROMPTS if len(prompt) >= 4] if kind == "block" else PROMPTS
    made = rollouts(net, SPECS[name], prompts)
    update = update_for("cj_grpo", kind, net, skip=False, settings={"loss_region": "all"})
    [batch] = update.prepare([trajectory for trajectory, _ in made], generator=seeded(0))
    values, units = update.values(net, batch), batch.units
    assert len(units) > 8
    for value, sample, column in zip(values, units.sample_U.tolist(), units.column_U.tolist(), strict=True):
        seen = made[sample][1][column - len(made[sample][0].prompt)]
        assert float(value) == pytest.approx(float(seen), abs=1e-5)


class Held:
    """A tensor kept for a backward pass; tells its book when it goes."""

    def __init__(self, tensor, book):
        self.tensor, self.book = tensor, book
        book["now"] += tensor.numel()
        book["most"] = max(book["most"], book["now"])

    def __del__(self):
        self.book["now"] -= self.tensor.numel()


@pytest.mark.parametrize("compared", [False, True])
@pytest.mark.parametrize("name", ["bgpo", "elbo_grpo", "espo", "spg"])
def test_memory_does_not_grow_with_the_samples(name, compared):
    """Tensors kept for backward passes, at 4 rows per forward, with 4 and with 16 noised rows per response."""
    net, trajectories = network_of("masked"), completions(groups=1, ragged=False)
    most = {}
    for rows in (4, 16):
        settings = {"corruptor": {"pairs": rows // 2} if name == "espo" else {"rows": rows}}
        update = update_for(name, "masked", net, rows=4, settings={**settings, "kl": {"coef": 0.0}})
        [batch] = update.prepare(trajectories, generator=seeded(0))
        old = update.values(net, batch) if compared else None
        book = {"now": 0, "most": 0}
        with torch.autograd.graph.saved_tensors_hooks(lambda t, book=book: Held(t, book), lambda held: held.tensor):
            gradient(update, net, batch.with_values(old=old))
        most[rows] = book["most"]
    assert most[16] < 1.1 * most[4], most
