"""``dare-train compare``: algorithms from one base, on the same prompts, at equal cost, judged on the same items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from dare_eval.commands.options import takes
from dare_train.commands.options import Config, OutputDir, ShowConfig

NAMES = "Rows by name, comma-separated: base, sft, vrpo, algorithms (all: every one), stages joined by +."


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of a comparison."""

    config: Config = None
    algos: Annotated[str | None, typer.Option(help=NAMES)] = None
    seeds: Annotated[int | None, typer.Option(min=1, help="Training seeds per row.")] = None
    budget: Annotated[
        str | None,
        typer.Option(help="CURRENCY=AMOUNT per row: cpu_seconds, seconds, rollout_tokens, forwards or steps."),
    ] = None
    output_dir: OutputDir = None
    show_config: ShowConfig = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check every row, print the plan and stop.")] = False
    nproc: Annotated[int, typer.Option(min=1, help="Runs side by side on this machine.")] = 1
    ray: Annotated[bool, typer.Option("--ray", help="Spread the runs over a Ray cluster (extra 'ray').")] = False


@takes(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Train several rows alike and compare them: scores pooled over seeds, paired tests, ties, what was not equal.

    Without --config the shipped Countdown model is the base: dare-train compare --algos sft,d1,cj_grpo --seeds 3
    --budget cpu_seconds=60
    """
    import shlex
    import sys

    import dare_train.rl.config  # noqa: F401  - makes the verb known
    from dare_eval.errors import UsageError
    from dare_eval.panels import output_console
    from dare_train.rl.compare import check_rows, show_plan
    from dare_train.rl.compare import compare as carry_out
    from dare_train.rl.compare_config import CompareConfig, read_budget
    from dare_train.rl.compare_plan import plan_rows
    from dare_train.rl.defaults import default_comparison
    from dare_train.settings import read_yaml, to_yaml, validate

    config = options.config or default_comparison()
    record: dict[str, Any] = read_yaml(config)
    if options.algos:
        record["rows"] = _rows(options.algos)
    if not record.get("rows"):
        raise UsageError("nothing to compare", remedy="--algos sft,d1,cj_grpo, or --config")
    budget = read_budget(options.budget) if options.budget else None
    given = {"seeds": options.seeds, "output_dir": options.output_dir, "budget": budget}
    record |= {key: value for key, value in given.items() if value is not None}
    found = validate(CompareConfig, record)
    console, home = output_console(), config.parent
    if options.show_config:
        console.out(to_yaml(found), end="", highlight=False)
        return
    if options.dry_run:
        rows = plan_rows(found, home)
        check_rows(rows)
        show_plan(found, rows, console)
        return
    command = "dare-train " + shlex.join(sys.argv[1:])
    carry_out(found, home, console, command=command, nproc=options.nproc, ray=options.ray)


def _rows(text: str) -> list[str]:
    """Return the rows that ``--algos`` names; ``all`` stands for every algorithm of reinforcement learning."""
    from dare_train.rl.algorithm import ALGORITHMS

    found: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        found += ALGORITHMS.names() if name == "all" else [name] if name else []
    return list(dict.fromkeys(found))
