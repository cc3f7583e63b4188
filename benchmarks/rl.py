"""One step of reinforcement learning, split into its parts, against a plain version and with each acceleration off.

    python benchmarks/rl.py                # the full table: minutes on two cores
    python benchmarks/rl.py --quick        # a small model, seconds: does the benchmark itself work?

LLaDA layout with random weights, float32 on the CPU; prompts of unequal length, groups of 4 completions, ELBO-GRPO with
1, 4 and 16 Monte-Carlo rows. The plain update is what a first version would be: all rows padded to the longest, logits
of every position over the whole vocabulary, one forward per Monte-Carlo row whose graph is kept until the loss. Both
must give the same gradient. Each variant runs in a process of its own, so that its peak memory is its own. The
engine is not measured here: it needs a GPU and a block-diffusion checkpoint.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from dare_eval.networks import build_network
from dare_eval.spec import DecodeSpec
from dare_train import token_loss
from dare_train.draws import seeded
from dare_train.rl.algorithm import find_algorithm
from dare_train.rl.backends import BackendFacts, InProcess
from dare_train.rl.problems import Problem
from dare_train.rl.records import answer_of, trajectory_of
from dare_train.rl.reward_pool import RewardPool
from dare_train.rl.rewards import JudgePlan, Outcome
from dare_train.rl.rollout import Sampler
from dare_train.rl.update import Updater
from dare_train.scorer import Scorer

PUBLISHED = {"dual cache and threshold": 2.2, "masked families, whole step": 4.0, "block families with an engine": 14.0}
"""Speed-ups that the reference system reports (its README); other models, other machines."""
SAMPLES = (1, 4, 16)
OFF = ("cache", "threshold", "packing", "fused loss")


@dataclasses.dataclass(frozen=True)
class Size:
    """Model and rollout sizes."""

    width: int = 256
    layers: int = 4
    vocab: int = 8000
    prompts: tuple[int, ...] = (16, 48, 96, 160)
    length: int = 32
    block: int = 8
    group: int = 4


QUICK = Size(width=64, layers=2, vocab=2000, prompts=(8, 40), length=16, block=8)


class Words:
    """Stands in for a tokenizer: a token is its number."""

    def batch_decode(self, rows, **_):
        """Return one text per row."""
        return [" ".join(map(str, row)) for row in rows]


def make_network(size: Size):
    """Return a random network whose confidences spread."""
    config = {
        "model_type": "llada", "d_model": size.width, "n_heads": 8, "n_kv_heads": 8, "n_layers": size.layers,
        "mlp_hidden_size": 3 * size.width, "vocab_size": size.vocab, "embedding_size": size.vocab,
        "max_sequence_length": 1024, "rope_theta": 500000.0, "mask_token_id": size.vocab - 1,
        "eos_token_id": size.vocab - 2, "pad_token_id": size.vocab - 2,
    }  # fmt: skip
    network = build_network(config, generator=seeded(0))
    with torch.no_grad():
        network.get_parameter("model.transformer.wte.weight").normal_(generator=seeded(1))
        head = network.get_parameter("model.transformer.ff_out.weight")
        head.normal_(0.0, 0.3 if size.width > 64 else 0.9, generator=seeded(2))
        head[-2:] = 0.0
    return network


def problems(size: Size) -> list[Problem]:
    """Return prompts of unequal length with a Countdown reference each."""
    rng = random.Random(0)
    found = []
    for number, length in enumerate(size.prompts):
        prompt = tuple(rng.randrange(size.vocab - 2) for _ in range(length))
        reference = {"numbers": [1, 2, 3], "target": 6}
        problem = Problem(prompt=prompt, text="", scorer="countdown", reference=reference, context={}, key=str(number))
        found.append(problem)
    return found


def spec_of(size: Size, off: str) -> DecodeSpec:
    """Return how the rollout decodes: dual cache and threshold unless switched off."""
    rule: dict[str, object] = {"policy": "threshold", "threshold": 0.5}
    if off in ("threshold", "plain"):
        rule = {"policy": "quota", "steps": size.length}
    cache = "none" if off in ("cache", "plain") else "dual"
    lengths = {"gen_length": size.length, "block_length": size.block}
    return DecodeSpec.build("llada", temperature=1.0, cache=cache, **lengths, **rule)


def plain_loss(network, updater: Updater, batch) -> Tensor:
    """Return the loss as a first version computes it: padded rows, all logits, every graph kept."""
    logps = []
    for row in range(int(batch.scored.rows_S.sum())):
        noisy, target, chosen, valid = batch.rows(slice(row, row + 1))
        logits_1TV = network(noisy, mask=valid[:, None, None, :])
        logp_1TV = logits_1TV.float().log_softmax(-1)
        logps.append(logp_1TV.gather(-1, target[..., None])[..., 0][chosen])
    value_U = updater.algorithm.reducer.values(torch.cat(logps), batch.scored, batch.units)
    length_U = batch.scored.length_S[batch.units.sample_U]
    found = updater.algorithm.objective(value_U, None, batch.units.advantage_U, length_U)
    return (found.loss_U * batch.policy_U).sum()


def step(size: Size, samples: int, off: str) -> dict[str, float]:
    """Do one step and return seconds by part, the loss and the peak memory of this process."""
    torch.set_num_threads(1)
    if off in ("fused loss", "plain"):
        token_loss.CHUNK_LOGITS = 2**40
    network, spec = make_network(size), spec_of(size, off)
    algorithm = find_algorithm("elbo_grpo").with_settings({"corruptor": {"rows": samples}, "kl": {"coef": 0.0}})
    scorer = Scorer(pack=off != "packing")
    updater = Updater(algorithm.resolve(network.config), network.config, scorer, rows_per_forward=8)
    backend = InProcess(BackendFacts(network=network, folder="", attn_backend="auto"))
    sampler = Sampler(backend=backend, tokenizer=Words(), spec=spec, group_size=size.group)
    pool, clock, found = RewardPool(JudgePlan(), workers=0), Clock(), dict[str, float]()
    rollouts = sampler.groups(list(enumerate(problems(size))), states=False)
    found["rollout"] = clock.lap()
    if off == "plain":  # both versions train on the same completions, or their gradients could not be compared
        rollouts = dataclasses.replace(sampler, spec=spec_of(size, "")).groups(
            list(enumerate(problems(size))), states=False
        )
        clock.lap()
    pool.submit([answer_of(rollout, spec) for rollout in rollouts]).result()
    found["reward"] = clock.lap()
    # Random weights solve nothing: rewards by place, so that there is something to learn in both versions alike.
    outcomes = [Outcome(reward=float(number % 2)) for number in range(len(rollouts))]
    trajectories = [trajectory_of(r, o, spec, states=False) for r, o in zip(rollouts, outcomes, strict=True)]
    [batch] = updater.passes(trajectories, seed=0)
    batch = updater.anchored(batch, network)
    found["scoring"] = clock.lap()
    if off == "plain":
        loss = plain_loss(network.train(), updater, batch)
        torch.autograd.backward(loss)
        found["loss"] = float(loss)
    else:
        found["loss"] = updater.backward(network.train(), batch)["loss"]
    found["update"] = clock.lap()
    norms = [float(p.grad.norm()) for p in network.parameters() if p.grad is not None]
    found["grad_norm"] = sum(norm * norm for norm in norms) ** 0.5
    found["nfe"] = sum(rollout.result.nfe for rollout in rollouts) / len(rollouts)
    return {**found, "mem_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


class Clock:
    """CPU seconds between laps."""

    def __init__(self) -> None:
        self.last = time.process_time()

    def lap(self) -> float:
        """Return the CPU seconds since the last lap."""
        before, self.last = self.last, time.process_time()
        return self.last - before


def measured(arguments: argparse.Namespace, samples: int, off: str) -> dict[str, float]:
    """Run one variant in a process of its own."""
    command = [sys.executable, __file__, "--one", off, "--samples", str(samples)]
    done = subprocess.run(
        [*command, *(["--quick"] if arguments.quick else [])], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    record: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return record


def main() -> None:
    """Run every variant and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small model")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--samples", type=int, default=16, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else Size()
    if arguments.one is not None:
        print(json.dumps(step(size, arguments.samples, arguments.one)))
        return
    table: dict[str, dict[str, float]] = {}
    print("samples  version  rollout  reward  scoring  update  step s  peak GiB  gradient norm")
    for samples in SAMPLES:
        for version in ("ours", "plain"):
            found = table[f"{version} {samples}"] = measured(arguments, samples, "plain" if version == "plain" else "")
            parts = [found[name] for name in ("rollout", "reward", "scoring", "update")]
            numbers = "  ".join(f"{value:7.3f}" for value in (*parts, sum(parts), found["mem_gib"]))
            print(f"{samples:7d}  {version:7s} {numbers}  {found['grad_norm']:.6g}")
    whole = {name: sum(found[p] for p in ("rollout", "reward", "scoring", "update")) for name, found in table.items()}
    for samples in SAMPLES:
        ours, plain = (table[f"{version} {samples}"]["grad_norm"] for version in ("ours", "plain"))
        if abs(ours - plain) > 1e-3 * plain:
            raise SystemExit(f"the versions disagree: gradient norms {ours} and {plain}")
        speed = whole[f"plain {samples}"] / whole[f"ours {samples}"]
        memory = table[f"ours {samples}"]["mem_gib"] / table[f"plain {samples}"]["mem_gib"]
        print(f"{samples} samples: {speed:.2f} times faster per step, {memory:.2f} of the memory")
    for off in OFF:
        found = table[f"without {off}"] = measured(arguments, 4, off)
        spent = sum(found[p] for p in ("rollout", "reward", "scoring", "update"))
        print(f"without {off}: {spent / whole['ours 4']:.2f} times the step (NFE {found['nfe']:.1f})")
    print("published: " + ", ".join(f"{name} {ratio:g} x" for name, ratio in PUBLISHED.items()))
    if arguments.output:
        arguments.output.write_text(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
