"""A fair comparison from start to end: plan, price, train, evaluate, test, and say what was not equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from dare_eval.errors import IncompleteError, UsageError
from dare_eval.records.atomic import write_atomic
from dare_eval.records.store import Store
from dare_train.folder import changed_keys
from dare_train.rl.compare_config import CompareConfig
from dare_train.rl.compare_jobs import Job, measure, run_jobs
from dare_train.rl.compare_plan import Row, Stage, plan_rows
from dare_train.rl.compare_report import Report, ledger_table, score_tables
from dare_train.rl.compare_stats import collect_lines, ledger, stability_of
from dare_train.rl.config import RlConfig
from dare_train.settings import read_yaml, to_yaml

EXPECTED = ("algo", "algorithm", "output_dir", "seed", "evaluation", "train.max_steps", "train.eval_every")
"""Settings that differ by design, or whose consequences the ledger shows."""


def compare(
    config: CompareConfig, home: Path | None, console: Console, *, command: str, nproc: int = 1, ray: bool = False
) -> Report:
    """Carry out the comparison and print it; raises ``IncompleteError`` at the end when a run failed."""
    folder = Path(config.output_dir)
    rows = plan_rows(config, home)
    check_rows(rows)
    Store()  # a store that cannot be opened is found before the first step
    _open(folder, config)
    steps = price(config, rows, folder, console)
    jobs = [
        Job(
            row=row,
            seed=seed,
            folder=folder / row.name.replace("+", "_").replace(" ", "_") / f"seed{seed}",
            steps=steps,
            heldout_points=config.heldout_points,
        )
        for seed in range(config.seeds)
        for row in rows
        if row.stages or seed == 0
    ]
    done, failed = run_jobs(jobs, console, nproc=nproc, ray=ray)
    base_of = {row.name: _base_row(row, rows) for row in rows if row.stages}
    report = Report(
        config=config,
        command=command,
        lines=collect_lines(done, base_of),
        stability=stability_of(done),
        ledger=ledger(done),
        differences=differences(rows),
        steps=steps,
        failed=failed,
    )
    report.write(folder)
    show(report, folder, console)
    if failed:
        raise IncompleteError(
            f"{len(failed)} of {len(jobs)} runs failed; the table holds the others",
            seen=failed[0],
            remedy="the same command repeats only what is missing",
        )
    return report


def price(config: CompareConfig, rows: Sequence[Row], folder: Path, console: Console) -> dict[str, int]:
    """Return the optimizer steps that the budget pays for, by bounded stage; measured once."""
    steps: dict[str, int] = {}
    for stage in {stage.name: stage for row in rows for stage in row.stages if stage.bounded}.values():
        assert config.budget is not None
        found = measure(stage, config.budget, folder)
        steps[stage.name] = int(found["steps"])
        cost = found["costs"]["cpu_s"]
        text = f"{stage.name}: {steps[stage.name]} steps of {cost:.3g} CPU-s each"
        console.print(f"{text} for {config.budget.currency} {config.budget.amount:g}", highlight=False)
    return steps


def check_rows(rows: Sequence[Row]) -> None:
    """Check every recipe, algorithm and evaluation, also where a checkpoint is not on this machine."""
    from dare_train.follow_up import config_files
    from dare_train.rl.build import resolve
    from dare_train.setup import plan_here

    for row in rows:
        list(config_files(Path(row.evaluation)))
        for stage in row.stages:
            settings = stage.config(seed=0, folder=Path("unused"), base=None)
            plan, _ = plan_here(settings.model)
            if isinstance(settings, RlConfig):
                resolve(settings, plan.config)


def show_plan(config: CompareConfig, rows: Sequence[Row], console: Console) -> None:
    """Print what would be run."""
    from dare_train.setup import plan_here

    table = Table(title="Checked; nothing was run", title_justify="left")
    for head in ("row", "stages", "base", "evaluation"):
        table.add_column(head)
    missing = set()
    for row in rows:
        parts = []
        for stage in row.stages:
            settings = stage.config(seed=0, folder=Path("unused"), base=None)
            length = "budget" if stage.bounded else f"{settings.train.max_steps} steps"
            parts.append(f"{stage.name} ({length})")
            missing.add(plan_here(settings.model)[1])
        table.add_row(row.name, " then ".join(parts) or "-", row.base, row.evaluation)
    console.print(table)
    budget = f"{config.budget.currency} = {config.budget.amount:g}" if config.budget else "as the recipes say"
    console.print(f"{config.seeds} seeds, budget: {budget}, {config.output_dir}", highlight=False, soft_wrap=True)
    for text in sorted(filter(None, missing)):
        console.print(f"not checked: {text}", highlight=False, soft_wrap=True)


def differences(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the settings in which the last stages of the rows differ, those of their design left out."""
    records = {row.name: _resolved(row.stages[-1]) for row in rows if row.stages}
    found: dict[str, dict[str, Any]] = {}
    names = list(records)
    for name in names[1:]:
        for key in changed_keys(records[names[0]], records[name]):
            values = {row: _at(record, key) for row, record in records.items()}
            whole = any(isinstance(value, dict) for value in values.values())  # a section that other verbs lack
            if not whole and not any(key == known or key.startswith(f"{known}.") for known in EXPECTED):
                found[key] = values
    return found


def show(report: Report, folder: Path, console: Console) -> None:
    """Print tables, ledger and where they are."""
    for table in score_tables(report):
        console.print(table)
    unequal = ledger_table(report)
    if unequal is not None:
        console.print(unequal)
    for key, values in report.differences.items():
        text = ", ".join(f"{row} {value}" for row, value in values.items())
        console.print(f"differs: {key}: {text}", highlight=False, soft_wrap=True)
    console.print(f"comparison: {folder / 'comparison.json'}", soft_wrap=True)
    console.print(f"table:      {folder / 'comparison.md'}", soft_wrap=True)


def _resolved(stage: Stage) -> dict[str, Any]:
    return stage.config(seed=0, folder=Path("unused"), base=None).model_dump(mode="json")


def _at(record: Mapping[str, Any], key: str) -> Any:
    here: Any = record
    for part in key.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here


def _base_row(row: Row, rows: Sequence[Row]) -> str:
    return next(other.name for other in rows if not other.stages and other.base == row.base)


def _open(folder: Path, config: CompareConfig) -> None:
    """Take the folder for this comparison; raises ``UsageError`` when it holds another one."""
    stored = folder / "compare.yaml"
    if stored.is_file():
        before, now = read_yaml(stored), config.model_dump(mode="json")
        changed = [key for key in changed_keys(before, now) if key not in ("rows", "seeds")]
        if changed:
            raise UsageError(
                "output_dir holds another comparison",
                seen=f"{folder}: {', '.join(changed)} differ",
                allowed="the same settings; rows and seeds may be added",
                remedy="--output-dir another folder",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(stored, to_yaml(config))
    except OSError as error:
        raise UsageError(
            f"the folder of the comparison cannot be written: {error.strerror}",
            seen=f"output_dir = {folder}",
            remedy="--output-dir another folder",
        ) from None
