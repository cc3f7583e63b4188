"""What the committed recipes of the tiny models reach, and at what cost: each is trained anew with several seeds.

    python benchmarks/recipes.py sudoku                          # masked diffusion, seeds 0-2, validation puzzles
    python benchmarks/recipes.py sudoku_block --split test       # block diffusion; the test split is for reporting only
    python benchmarks/recipes.py sudoku --seeds 7 --set train.max_steps=400
    python benchmarks/recipes.py vrpo vrpo_lora                  # margins and accuracy on held-out pairs

Cost is the CPU time of the whole command (imports, generating rows, training, export), one thread. Quality of the
Sudoku models is the share of puzzles that are solved, decoded one token per forward, with Wilson's interval; of
preference training it is what the run itself measures on held-out pairs before and after, with bootstrap intervals.
Scores through OpenCompass come from ``dare-train ... --then-eval`` (docs/training.md).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dare_eval.decoding import decode
from dare_eval.networks import load_network
from dare_eval.puzzles import prompts, sudoku
from dare_eval.records.intervals import wilson
from dare_eval.scoring import score
from dare_eval.spec import DecodeSpec
from dare_train.engine.heldout import shown
from dare_train.engine.metrics import read_metrics
from dare_train.setup import load_tokenizer

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Recipe:
    """A training config and, for Sudoku models, how the result decodes."""

    config: str
    verb: str = "sft"
    family: str = ""
    block_length: int = 0
    cache: str = ""


RECIPES = {
    "sudoku": Recipe("sft_tiny_sudoku", family="llada", block_length=16, cache="none"),
    "sudoku_block": Recipe("sft_tiny_sudoku_block", family="sdar", block_length=4, cache="block"),
    "vrpo": Recipe("vrpo_tiny_countdown", "preference"),
    "vrpo_lora": Recipe("vrpo_lora_tiny_countdown", "preference"),
}


def train(recipe: Recipe, seed: int, overrides: list[str], folder: Path) -> float:
    """Train and return the CPU seconds of the command."""
    program = [sys.executable, "-m", "dare_train", recipe.verb, "--config", f"configs/train/{recipe.config}.yaml"]
    changes = [part for text in [f"seed={seed}", *overrides] for part in ("--set", text)]
    before = _children_s()
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*program, *changes, "--output-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    return _children_s() - before


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def solved(recipe: Recipe, model: Path, split: str, count: int, steps: int) -> list[Any]:
    """Return the score of each puzzle of ``split``."""
    network, tokenizer = load_network(str(model)), load_tokenizer(str(model))
    puzzles = sudoku.generate(split, count)
    spec = DecodeSpec.build(
        recipe.family,
        gen_length=sudoku.CELLS,
        block_length=recipe.block_length,
        policy="quota",
        steps=steps,
        cache=recipe.cache,
    )
    turns = [[{"role": "user", "content": prompts.sudoku_prompt(p.puzzle, "tiny").text}] for p in puzzles]
    texts = [tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True) for turn in turns]
    results = decode(network, tokenizer(texts, add_special_tokens=False)["input_ids"], spec)
    answers = [tokenizer.decode(result.tokens, skip_special_tokens=True) for result in results]
    references = [{"puzzle": p.puzzle, "solution": p.solution} for p in puzzles]
    return [score("sudoku", answer, reference) for answer, reference in zip(answers, references, strict=True)]


def report_sudoku(label: str, recipe: Recipe, folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Print and return the share of solved puzzles for each number of steps."""
    found = []
    for split, steps in itertools.product(options.split, options.steps):
        scores = solved(recipe, folder / "model", split, options.count, steps)
        exact = wilson(sum(one.correct for one in scores), len(scores))
        cells = sum(one.value for one in scores) / len(scores)
        found.append(
            {"split": split, "steps": steps, "exact": exact.value, "low": exact.low, "high": exact.high, "cells": cells}
        )
        print(
            f"{label}, {split}, {steps} steps: exact {100 * exact.value:.1f} %",
            f"[{100 * exact.low:.1f}, {100 * exact.high:.1f}], cells {100 * cells:.1f} %",
            flush=True,
        )
    return found


def report_pairs(label: str, folder: Path) -> list[dict[str, Any]]:
    """Print and return the held-out lines of a preference run: before, during and after training."""
    lines = [line for line in read_metrics(folder / "metrics.jsonl") if "heldout_margin" in line]
    for line in lines:
        names = dict.fromkeys(("margin", "margin_accuracy", "policy_accuracy"))
        print(f"{label}, step {line['step']}: {shown(line, names)}", flush=True)
    return lines


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipes", nargs="+", choices=RECIPES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--split", nargs="+", choices=("validation", "test"), default=["validation"])
    parser.add_argument("--count", type=int, default=400, help="puzzles")
    parser.add_argument("--steps", type=int, nargs="+", default=[sudoku.CELLS], help="decoding steps")
    parser.add_argument("--set", action="append", default=[], help="override of the recipe, as a.b=value")
    parser.add_argument("--keep", type=Path, help="keep the run folders below this folder")
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for name, seed in itertools.product(options.recipes, options.seeds):
        with tempfile.TemporaryDirectory() as scratch:
            recipe, folder = RECIPES[name], (options.keep or Path(scratch)).resolve() / f"{name}_{seed}"
            cpu_s = train(recipe, seed, options.set, folder)
            label = f"{name} seed {seed}: {cpu_s:.0f} CPU-s"
            if recipe.verb == "sft":
                rows = report_sudoku(label, recipe, folder, options)
            else:
                rows = report_pairs(label, folder)
            found += [{"recipe": name, "seed": seed, "cpu_s": cpu_s, **row} for row in rows]
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
