"""Runs inside each of several processes: training runs one after another, then checks that need more than one process.

    python -m torch.distributed.run --standalone --nproc-per-node 2 -m tests.train.parallel_worker PLAN.json

PLAN.json holds ``runs`` (verb and settings each) and ``checks`` (names below); the first process writes what the checks
found to ``found.pt`` beside it.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import torch
from rich.console import Console

import dare_train.rl.config  # noqa: F401  - makes the verb known
from dare_eval.decoding import decode
from dare_eval.networks import build_network
from dare_eval.spec import DecodeSpec
from dare_train.algorithms.build import METHODS
from dare_train.config import VERBS, TrainSettings
from dare_train.draws import seeded
from dare_train.engine.sequence import make_split
from dare_train.engine.sharding import place
from dare_train.engine.world import World, join_world, leave_world
from dare_train.rl.gather import gathered
from dare_train.run import run
from dare_train.scorer import Scorer
from dare_train.settings import validate
from tests.train.parallel_cases import CASES, DECODES, gradients, problem, scored


def train_all(runs):
    for item in runs:
        run(validate(VERBS[item["verb"]], item["settings"]), METHODS[item["verb"]], Console(file=io.StringIO()))


def split_scores(world: World):
    """Scores and gradients of every case with columns split, summed over processes as the loop does."""
    found = {}
    for name, case in CASES.items():
        network = build_network(case.config, generator=seeded(0), dtype=torch.float64)
        network.gradient_checkpointing = case.recompute
        network.split = make_split(world)
        values = scored(network, case)
        values.backward_sum(world.size)
        for parameter in network.parameters():
            torch.distributed.all_reduce(parameter.grad)
            parameter.grad /= world.processes
        found[name] = (values.logp_X.detach(), gradients(network))
    return found


def split_tokens(world: World):
    """Tokens and passes of every decode case with columns split."""
    found = {}
    for name, (config, prompts, settings) in DECODES.items():
        network = build_network(config, generator=seeded(0), dtype=torch.float64).eval()
        network.split = make_split(world)
        spec = DecodeSpec.build(network.config.family, **settings)
        found[name] = [(result.tokens, result.nfe) for result in decode(network, prompts, spec)]
    return found


def uneven_forwards(world: World):
    """Different numbers of forwards in each process with the weights gathered, then one training pass."""
    whole = World(world.process, world.processes)
    config = CASES["plain"].config
    network = place(
        lambda empty: torch.nn.Module.to(build_network(config, generator=seeded(0)), "meta" if empty else "cpu"),
        whole,
        TrainSettings(max_steps=1),
        "cpu",
    )
    ids_BT, *_ = problem(CASES["plain"])
    with torch.no_grad(), gathered(network):
        for _ in range(1 + 3 * whole.rank):
            hidden = network.head(network.body(ids_BT))
    again = network.head(network.body(ids_BT))
    again.sum().backward()
    shapes = [parameter.to_local().shape == parameter.shape for parameter in network.parameters()]
    return float((again.detach() - hidden).abs().max()), any(shapes)


def uneven_chunks(world: World):
    """Sharded heads with another number of chunks in each process."""
    from dare_train import token_loss

    whole = World(world.process, world.processes)
    case = CASES["plain"]
    network = place(
        lambda empty: torch.nn.Module.to(build_network(case.config, generator=seeded(0)), "meta" if empty else "cpu"),
        whole,
        TrainSettings(max_steps=1),
        "cpu",
    )
    ids_BT, noisy_BT, chosen_BT, valid_BT = problem(case)
    keep_BT = chosen_BT if whole.rank else chosen_BT & (chosen_BT.cumsum(1) <= 1)
    original = token_loss.chunked_logps
    token_loss.chunked_logps = lambda net, hidden, target, size, temperature: original(net, hidden, target, 2)
    logp_X = Scorer()(network, noisy_BT, ids_BT, keep_BT, valid_BT)
    torch.autograd.backward(logp_X.sum())
    token_loss.chunked_logps = original
    found = {name: parameter.grad.full_tensor() for name, parameter in network.named_parameters()}
    return len(logp_X), found


CHECKS = {
    "split_scores": split_scores,
    "split_tokens": split_tokens,
    "uneven_forwards": uneven_forwards,
    "uneven_chunks": uneven_chunks,
}


def main(path: Path) -> None:
    torch.set_num_threads(1)
    plan = json.loads(path.read_text())
    world = join_world("cpu", plan["split"])
    train_all(plan["runs"])
    found = {name: CHECKS[name](world) for name in plan["checks"]}
    if world.leads:
        torch.save(found, path.with_name("found.pt"))
    world.barrier()
    leave_world()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
