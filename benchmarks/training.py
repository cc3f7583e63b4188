"""Speed and memory of training, as ratios of one run on one machine.

    python benchmarks/training.py                     # all parts: minutes on one core, 5 GiB of memory
    python benchmarks/training.py loss samples        # some of them
    python benchmarks/training.py --quick             # small sizes, seconds: does the benchmark itself work?

Times are CPU times of this process, variants take turns and each one's best counts; memory is the peak of the
resident set above what was resident before, weights and optimizer states included in that (Linux), each variant in a
process of its own.

    packing   supervised fine-tuning on rows as long as GSM8K's (benchmarks/gsm8k_lengths.json): packed against padded
              to the longest row of a batch of 16, and to 512; the share of the token ratio that becomes speed
    loss      chunked against plain cross entropy at vocabulary 126k, width 256, 2,048 positions
    samples   memory of VRPO with 16 Monte-Carlo samples against 1
    overhead  share of a step outside the forward and backward passes
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dare_eval.networks import build_network
from dare_train.algorithms.preference import DEFAULTS, Preference, PreferencePlan
from dare_train.algorithms.sft import Sft, SftPlan
from dare_train.config import ObjectiveSettings
from dare_train.data.batches import Batch, collate
from dare_train.data.pairs import Pair
from dare_train.data.render import Example
from dare_train.data.supply import Memory
from dare_train.draws import seeded
from dare_train.engine.world import World
from dare_train.presets import resolve_objective
from dare_train.scorer import Scorer
from dare_train.token_loss import target_logps

LENGTHS = Path(__file__).with_name("gsm8k_lengths.json")
PARTS = ("packing", "loss", "samples", "overhead")


@dataclass(frozen=True)
class Size:
    """Model and batch sizes."""

    width: int = 256
    layers: int = 2
    vocab: int = 1024
    rows: int = 16
    batches: int = 2
    longest: int = 512
    loss_vocab: int = 126464
    loss_positions: int = 2048
    repeat: int = 3
    steps: int = 8


QUICK = Size(width=32, layers=2, vocab=64, rows=4, batches=2, loss_vocab=32768, loss_positions=2048, repeat=1, steps=4)


def make_network(size: Size, *, vocab: int | None = None, layers: int | None = None) -> Any:
    """Return a random network in LLaDA layout with its gradients in place."""
    words = vocab or size.vocab
    config = {
        "model_type": "llada", "d_model": size.width, "n_heads": 4, "n_layers": layers or size.layers,
        "mlp_hidden_size": 3 * size.width, "vocab_size": words, "max_sequence_length": 4096, "rope_theta": 500000.0,
        "mask_token_id": words - 1, "eos_token_id": words - 2, "pad_token_id": words - 2, "weight_tying": False,
    }  # fmt: skip
    network = build_network(config, generator=seeded(0)).train()
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return network


# --- rows ------------------------------------------------------------------------------------------------------------


def gsm8k_examples(size: Size, count: int) -> list[Example]:
    """Return rows of random tokens whose lengths follow GSM8K's."""
    known = json.loads(LENGTHS.read_text())
    generator = seeded(1)
    bins_N = torch.multinomial(torch.tensor(known["rows"], dtype=torch.float64), count, True, generator=generator)
    inside_N = torch.randint(known["bin_tokens"], (count,), generator=generator)
    lengths = (bins_N * known["bin_tokens"] + inside_N).clamp(max=size.longest).tolist()
    prompts = [round((1 - known["answer_share"]) * length) for length in lengths]
    return [
        Example(tuple(torch.randint(size.vocab - 2, (length,), generator=generator).tolist()), prompt)
        for length, prompt in zip(lengths, prompts, strict=True)
    ]


class Wide(Sft):
    """Supervised fine-tuning whose rows are all padded to one length."""

    def batch(self, step: int) -> Batch:
        """Return the batch of ``step`` padded to the plan's longest length."""
        first = step * self.plan.batch_size
        rows = self.supply.take(first, self.plan.batch_size)
        keys = range(first, first + len(rows))
        return collate(rows, keys, pad_id=self.plan.pad_id, length=self.plan.max_length)


def packing_variant(name: str, size: Size) -> Sft:
    """Return the algorithm of one variant over the same rows."""
    plan = SftPlan(
        objective=resolve_objective(ObjectiveSettings(preset="llada"), "llada", None),
        seed=0,
        batch_size=size.rows,
        micro_batch_size=size.rows,
        mask_id=size.vocab - 1,
        pad_id=size.vocab - 2,
        eos_id=size.vocab - 2,
        scorer=Scorer(pack=name == "packed"),
        max_length=size.longest,
    )
    rows = Memory(gsm8k_examples(size, size.rows * size.batches), 0, shuffle=False)
    return (Wide if name == "padded_512" else Sft)(rows, plan, World())


def train_step(algorithm: Any, network: Any, step: int) -> None:
    """Add the gradient of one batch."""
    for part in algorithm.work(step):
        algorithm.backward(network, part)


# --- measurements ----------------------------------------------------------------------------------------------------


def best_times(variants: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Return the least CPU seconds of each variant; they take turns."""
    found: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repeat):
        for name, work in variants.items():
            began_s = time.process_time()
            work()
            found[name].append(time.process_time() - began_s)
    return {name: min(values) for name, values in found.items()}


def peak_above_mib(work: Callable[[], object]) -> float:
    """Return by how much the peak resident memory of ``work()`` exceeds what was resident before (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status_kib("VmRSS")
    work()
    return (_status_kib("VmHWM") - before) / 1024


def _status_kib(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1])


def probe(name: str, quick: bool) -> float:
    """Return the peak memory of one variant, measured in a process of its own.

    The quick one forks, which saves the imports; pages of shared libraries then count again.
    """
    if quick:
        with get_context("fork").Pool(1) as pool:
            return pool.apply(quick_probe, (name,))
    command = [sys.executable, __file__, "--probe", name]
    # Large blocks straight from the system and back to it, so that the resident set is what is in use.
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def quick_probe(name: str) -> float:
    """Return the peak memory of one variant at the small sizes, in this process."""
    return probes(QUICK)[name]()


def probes(size: Size) -> dict[str, Callable[[], float]]:
    """Return what each name of ``--probe`` measures."""
    return {
        **{name: lambda name=name: packing_memory(name, size) for name in ("packed", "padded", "padded_512")},
        "plain": lambda: loss_memory(size, size.loss_positions),
        "chunked": lambda: loss_memory(size, None),
        "samples_1": lambda: sample_memory(size, 1),
        "samples_16": lambda: sample_memory(size, 16),
    }


# --- parts -----------------------------------------------------------------------------------------------------------


def packing(size: Size, quick: bool) -> dict[str, float]:
    """Measure packed rows against padded ones."""
    network = make_network(size)
    names = ("packed", "padded", "padded_512")
    algorithms = {name: packing_variant(name, size) for name in names}
    lengths = [[int(row.sum()) for row in algorithms["padded"].batch(step).valid_BT] for step in range(size.batches)]
    tokens = sum(map(sum, lengths))
    padded = sum(len(batch) * max(batch) for batch in lengths)
    wide = size.longest * size.rows * size.batches
    times = dict.fromkeys(names, 0.0)
    for step in range(size.batches):
        variants = {name: lambda name=name, step=step: train_step(algorithms[name], network, step) for name in names}
        for name, spent_s in best_times(variants, size.repeat).items():
            times[name] += spent_s
    memory = {f"{name}_mib": probe(name, quick) for name in names}
    speed, speed_512 = times["padded"] / times["packed"], times["padded_512"] / times["packed"]
    return {
        "packed_tokens_per_s": tokens / times["packed"],
        "padded_tokens_per_s": tokens / times["padded"],
        "padded_512_tokens_per_s": tokens / times["padded_512"],
        "speed_against_padded": speed,
        "token_ratio": padded / tokens,
        "share_of_token_ratio": speed / (padded / tokens),
        "speed_against_512": speed_512,
        "token_ratio_512": wide / tokens,
        "share_of_token_ratio_512": speed_512 / (wide / tokens),
        **memory,
    }


def packing_memory(name: str, size: Size) -> float:
    """Return the peak memory of one batch."""
    network, algorithm = make_network(size), packing_variant(name, size)
    return peak_above_mib(lambda: train_step(algorithm, network, 0))


def loss_inputs(size: Size) -> tuple[Any, Tensor, Tensor]:
    """Return a network that is little more than its head, hidden states and targets."""
    network = make_network(size, vocab=size.loss_vocab, layers=1)
    hidden_XD = torch.randn(size.loss_positions, size.width, generator=seeded(2), requires_grad=True)
    hidden_XD.grad = torch.zeros_like(hidden_XD)
    return network, hidden_XD, torch.randint(size.loss_vocab, (size.loss_positions,), generator=seeded(3))


def loss_step(network: Any, hidden_XD: Tensor, target_X: Tensor, chunk: int | None) -> Tensor:
    """Add the gradient of the mean loss; ``chunk`` None is what training uses."""
    loss = -target_logps(network, hidden_XD, target_X, chunk=chunk).mean()
    torch.autograd.backward(loss)
    return loss.detach()


def loss(size: Size, quick: bool) -> dict[str, float]:
    """Measure the chunked loss against the plain one; both give the same value."""
    network, hidden_XD, target_X = loss_inputs(size)
    sizes = {"plain": size.loss_positions, "chunked": None}
    values: dict[str, Tensor] = {}

    def step(name: str) -> None:
        values[name] = loss_step(network, hidden_XD, target_X, sizes[name])

    times = best_times({name: partial(step, name) for name in sizes}, max(size.repeat - 1, 1))
    torch.testing.assert_close(values["plain"], values["chunked"])
    memory = {name: probe(name, quick) for name in sizes}
    return {
        "plain_s": times["plain"],
        "chunked_s": times["chunked"],
        "speed": times["plain"] / times["chunked"],
        "plain_mib": memory["plain"],
        "chunked_mib": memory["chunked"],
        "memory": memory["chunked"] / memory["plain"],
    }


def loss_memory(size: Size, chunk: int | None) -> float:
    """Return the peak memory of one loss and its gradient."""
    network, hidden_XD, target_X = loss_inputs(size)
    return peak_above_mib(lambda: loss_step(network, hidden_XD, target_X, chunk))


def preference(size: Size, samples: int) -> tuple[Any, Preference]:
    """Return a network and VRPO over four pairs with so many Monte-Carlo samples."""
    rows = gsm8k_examples(size, 8)
    pairs = [Pair(chosen, Example(chosen.ids[: chosen.prompt_length] + other.ids, chosen.prompt_length))
             for chosen, other in zip(rows[::2], rows[1::2], strict=True)]  # fmt: skip
    plan = PreferencePlan(
        algo="vrpo",
        beta=0.2,
        by_length=False,
        rows_per_forward=8,
        heldout_times=1,
        seed=0,
        batch_size=len(pairs),
        micro_batch_size=len(pairs),
        mask_id=size.vocab - 1,
        pad_id=size.vocab - 2,
        scorer=Scorer(),
        **{**DEFAULTS["vrpo"], "times": samples},  # type: ignore[arg-type]
    )
    network = make_network(size)
    algorithm = Preference(Memory(pairs, 0, shuffle=False), (), plan, World())
    algorithm.begin(network, lambda: make_network(size))
    return network, algorithm


def sample_memory(size: Size, samples: int) -> float:
    """Return the peak memory of one step of VRPO."""
    network, algorithm = preference(size, samples)
    with torch.no_grad():  # away from the start, where all gradients but the policy's own would vanish
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=seeded(4)) * 1e-3)
    return peak_above_mib(lambda: train_step(algorithm, network, 0))


def samples(size: Size, quick: bool) -> dict[str, float]:
    """Measure the memory of 16 samples against that of one."""
    few, many = probe("samples_1", quick), probe("samples_16", quick)
    return {"samples_1_mib": few, "samples_16_mib": many, "memory": many / few}


def overhead(size: Size, quick: bool) -> dict[str, float]:
    """Measure the share of a step outside forward and backward, in the training loop itself."""
    from dare_train.config import OptimSettings
    from dare_train.engine.loop import TrainState, train_step
    from dare_train.engine.optim import build_optimizer

    network = make_network(size)
    algorithm = packing_variant("packed", size)
    settings = OptimSettings()
    state = TrainState(network, build_optimizer(network, settings), algorithm, World())
    numbers = [train_step(state, run_settings(settings, size), Path()) for _ in range(size.steps)][1:]
    outside, whole = (sum(n[key] for n in numbers) for key in ("outside_s", "step_s"))
    return {"outside_s": outside / len(numbers), "step_s": whole / len(numbers), "share": outside / whole}


def run_settings(settings: Any, size: Size) -> Any:
    """Return the settings that the loop reads of a step."""
    from dare_train.config import DataSettings, ModelSettings, SftConfig, TrainSettings

    return SftConfig(
        output_dir="unused",
        model=ModelSettings(base="unused"),
        data=DataSettings(train="unused"),
        optim=settings,
        train=TrainSettings(max_steps=size.steps, batch_size=size.rows),
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes instead of the published ones")
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    size = QUICK if options.quick else Size()
    if options.probe:
        print(probes(size)[options.probe]())
        return
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {', '.join(unknown)}")
    measures = {"packing": packing, "loss": loss, "samples": samples, "overhead": overhead}
    found = {}
    for name in options.parts or PARTS:
        found[name] = measures[name](size, options.quick)
        print(name)
        for key, value in found[name].items():
            print(f"  {key:28} {value:12.4g}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
