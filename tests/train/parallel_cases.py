"""Networks, rows and decode settings that must give the same in several processes as in one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dare_train.draws import seeded
from dare_train.scorer import Scorer
from tests.conftest import ROOT
from tests.networks.shapes import DREAM, LLADA2, LLADA_MOE
from tests.train.conftest import ARCHITECTURE
from tests.train.test_scorer import MASK, TOKENS, VOCAB, padded, rows

LLADA = {**ARCHITECTURE, **TOKENS}
GROUPED = {**LLADA, "d_model": 24, "n_heads": 6, "n_kv_heads": 3}


@dataclass(frozen=True)
class Case:
    config: dict[str, Any]
    lengths: tuple[int, ...]
    scorer: Scorer = field(default_factory=Scorer)
    recompute: bool = False


CASES = {
    "plain": Case(LLADA, (8, 8)),
    "odd_length": Case(LLADA, (7, 7)),
    "packed": Case(LLADA, (4, 9, 6)),
    "padded": Case(LLADA, (4, 9), Scorer(pack=False)),
    "shifted": Case(LLADA, (5, 5), Scorer(shift=True)),
    "blocks": Case({**LLADA, "block_size": 4}, (7, 11), Scorer(block_length=4)),
    "three_kv_heads": Case(GROUPED, (5, 8)),
    "recomputed": Case(LLADA, (9, 5), recompute=True),
    "experts": Case(LLADA_MOE, (6, 9)),
    "grouped_experts": Case(LLADA2, (7, 11), Scorer(block_length=4)),
    "tied_head": Case({**LLADA, "weight_tying": True}, (7, 4)),
}
PROMPTS = [[5, 6, 7], [8, 9, 10, 11, 12]]
DECODES = {
    "full": (LLADA, PROMPTS, {"gen_length": 8, "block_length": 8, "steps": 4}),
    "prefix": (LLADA, PROMPTS, {"gen_length": 8, "block_length": 4, "steps": 4, "cache": "prefix"}),
    "dual": (LLADA, PROMPTS[:1], {"gen_length": 9, "block_length": 3, "steps": 6, "cache": "dual"}),
    "block": (
        {**LLADA, "block_size": 3},
        PROMPTS,
        {"gen_length": 9, "block_length": 3, "steps": 6, "cache": "block"},
    ),
    "shifted": (DREAM, PROMPTS, {"gen_length": 6, "block_length": 3, "steps": 6, "cache": "prefix"}),
    "threshold": (GROUPED, PROMPTS, {"gen_length": 8, "block_length": 4, "policy": "threshold", "threshold": 0.05}),
}


@dataclass
class Scored:
    logp_X: Tensor

    def backward_sum(self, shares: int) -> None:
        """A loss that is not linear, as the loop weighs it."""
        loss = (self.logp_X.exp() + 0.3 * self.logp_X).sum()
        torch.autograd.backward(loss * shares)


def problem(case: Case) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens, noisy tokens, chosen positions and real positions."""
    vocab = min(VOCAB, case.config["vocab_size"])
    sequences = [row.clamp_max(vocab - 1) for row in rows(*case.lengths)]
    ids_BT, valid_BT = padded(sequences, max(case.lengths))
    drawn_BT = torch.rand(ids_BT.shape, generator=seeded(2)) < 0.6
    chosen_BT = valid_BT & drawn_BT & (torch.arange(ids_BT.shape[1]) > 0)
    return ids_BT, ids_BT.masked_fill(chosen_BT, MASK), chosen_BT, valid_BT


def scored(network: Any, case: Case) -> Scored:
    ids_BT, noisy_BT, chosen_BT, valid_BT = problem(case)
    return Scored(case.scorer(network, noisy_BT, ids_BT, chosen_BT, valid_BT))


def gradients(network: Any) -> dict[str, Tensor]:
    return {name: parameter.grad.clone() for name, parameter in network.named_parameters()}


def in_processes(folder: Path, plan: dict[str, Any], processes: int = 2) -> Any:
    """Run ``tests.train.parallel_worker`` in so many processes and return what its checks found."""
    path = folder / "plan.json"
    path.write_text(json.dumps({"runs": [], "checks": [], "split": 1, **plan}))
    launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, "-m", *launcher, "-m", "tests.train.parallel_worker", str(path)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=500, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("[rank0]")]
    assert done.returncode == 0, "\n".join(said[-40:]) or done.stderr[-4000:]
    return torch.load(folder / "found.pt", weights_only=False)
