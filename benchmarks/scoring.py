"""Throughput of the scorers on recorded outputs, and the mathematical one beside upstream's MATHVerifyEvaluator.

Reads the recorded LLaDA-8B outputs below ``DARE_DATA``. Upstream starts a process per item, so its part takes about a
minute; ``--no-upstream`` leaves it out. Every item on which the verdicts differ is listed with both readings.

    DARE_DATA=... python benchmarks/scoring.py --items 500
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from dare_eval.scoring import score
from dare_eval.scoring.math.pool import POOL

SPECIAL = ("<|eot_id|>", "<|endoftext|>")


def recorded(data: Path, name: str, items: int) -> list[dict[str, Any]]:
    """Return the first ``items`` recorded rows of a benchmark, special tokens removed as a model wrapper does."""
    with gzip.open(data / "recorded" / f"llada8b_instruct_{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for _, line in zip(range(items), lines, strict=False)]
    for row in rows:
        for token in SPECIAL:
            row["output"] = row["output"].replace(token, "")
    return rows


def golds(data: Path) -> dict[str, dict[str, str]]:
    """Return the gold answers of GSM8K and MATH-500 by item id."""
    gsm8k = [json.loads(line) for line in (data / "data/gsm8k/test.jsonl").read_text().splitlines()]
    math = [json.loads(line) for line in (data / "data/math/test_prm800k_500.jsonl").read_text().splitlines()]
    return {
        "gsm8k": {row["id"]: row["answer"] for row in gsm8k},
        "math500": {row["id"]: row["answer"] for row in math},
    }


def worker_cpu_s() -> float:
    """Return the CPU seconds that the comparison workers have used so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    stats = [Path(f"/proc/{worker.process.pid}/stat").read_text().split() for worker in POOL.idle]
    return sum(int(value) for stat in stats for value in stat[13:15]) / ticks


def family_cpu_s() -> float:
    """Return the CPU seconds of this process and of the children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def ours(kind: str, rows: list[dict[str, Any]], gold: dict[str, str]) -> list[Any]:
    """Score rows with our scorer and print items per wall second and per CPU second (workers included)."""
    score("math", r"\boxed{\sin x}", "1")  # starts the worker
    wall, cpu = time.perf_counter(), time.process_time() + worker_cpu_s()
    scores = [score(kind, row["output"], gold[row["item"]]) for row in rows]
    wall, cpu = time.perf_counter() - wall, time.process_time() + worker_cpu_s() - cpu
    right = sum(found.correct for found in scores)
    rates = f"{len(rows) / wall:8.0f} items/s wall {len(rows) / cpu:8.0f} items per CPU-second"
    print(f"{kind:8} {len(rows):5} items {rates}   right {100 * right / len(rows):.1f} %")
    return scores


def upstream(rows: list[dict[str, Any]], gold: dict[str, str]) -> list[dict[str, Any]]:
    """Score rows with OpenCompass's evaluator and print its rate."""
    from opencompass.evaluator import MATHVerifyEvaluator

    wall, cpu = time.perf_counter(), family_cpu_s()
    found = MATHVerifyEvaluator().score([row["output"] for row in rows], [gold[row["item"]] for row in rows])
    wall, cpu = time.perf_counter() - wall, family_cpu_s() - cpu
    details: list[dict[str, Any]] = found["details"]
    rates = f"{len(rows) / wall:8.1f} items/s wall {len(rows) / cpu:8.1f} items per CPU-second"
    print(f"upstream {len(rows):5} items {rates}   right {found['accuracy']:.1f} %")
    if len(details) != len(rows):
        sys.exit(f"upstream gave {len(details)} detail rows for {len(rows)} items: they cannot be matched")
    return details


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=500, help="recorded rows per benchmark")
    parser.add_argument("--no-upstream", action="store_true", help="leave upstream's evaluator out")
    options = parser.parse_args()
    data = Path(os.environ.get("DARE_DATA", ""))
    if not (data / "recorded").is_dir():
        parser.exit(4, "DARE_DATA must name the folder that holds recorded/ and data/\n")
    gold = golds(data)
    ours("gsm8k", recorded(data, "gsm8k", options.items), gold["gsm8k"])
    rows = recorded(data, "math500", options.items)
    started = time.perf_counter()
    scores = ours("math", rows, gold["math500"])
    wall = time.perf_counter() - started
    if options.no_upstream:
        return
    upstream_started = time.perf_counter()
    details = upstream(rows, gold["math500"])
    print(f"ours is {(time.perf_counter() - upstream_started) / wall:.0f} x faster by the wall clock")
    for row, found, detail in zip(rows, scores, details, strict=True):
        if found.correct != detail["correct"]:
            print(f"differs: {row['item']} at {row['gen_length']} tokens, gold {gold['math500'][row['item']]}")
            print(f"  ours     {found.correct!s:5} {found.rule}: {found.extracted}")
            print(f"  upstream {detail['correct']!s:5} {detail['pred']}")


if __name__ == "__main__":
    main()
