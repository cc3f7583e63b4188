"""``--dry-run``: everything that can be checked without training, what could not be, and what the run will need.

Nothing is downloaded but rows: a checkpoint that is not on this machine is planned from the sizes its authors
published. Rows that cannot be read here (no tokenizer yet, no network) are planned at their greatest length, and the
output says so; with the checkpoint in place the same command checks them, too. Numbers: ``dare_train.estimate``.

    dare-train sft --config configs/train/sft_llada_8b.yaml --dry-run --nproc 8
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dare_train.config import RunConfig
from dare_train.data.rows import UnreachableError
from dare_train.engine.world import plan_world
from dare_train.estimate import Estimate, estimate
from dare_train.reading import TrainingRows, assumed_rows, look_at_rows, skipped_text
from dare_train.run import Prepared, check_batch, check_spread
from dare_train.setup import ModelPlan, choose_device, plan_here

if TYPE_CHECKING:
    from dare_train.algorithms.build import Method


def dry_run(config: RunConfig, method: Method, console: Console, *, processes: int = 1) -> Estimate:
    """Check ``config`` for ``processes`` processes and print the estimate; raises the error of what is wrong."""
    world = plan_world(processes, config.train.sequence_parallel)
    check_batch(config, world)
    device = choose_device(config.train.device)
    plan, missing = plan_here(config.model)
    check_spread(config, world, plan)
    rows, unread = _rows(method, plan, config)
    prepared = Prepared(config, plan, rows, device, world)
    algorithm = method.build(prepared)
    found = estimate(prepared, algorithm)
    show(prepared, found, algorithm.describe(), [text for text in (missing, unread) if text], console)
    return found


def _rows(method: Method, plan: ModelPlan, config: RunConfig) -> tuple[TrainingRows, str]:
    if plan.tokenizer is None:
        look_at_rows(config.data)
        return assumed_rows(config.data), "rows: reading them needs the checkpoint's tokenizer"
    try:
        return method.read(plan, config.data), ""
    except UnreachableError as error:
        return assumed_rows(config.data), f"rows: {error.what.splitlines()[0]}"


def show(
    prepared: Prepared, found: Estimate, described: dict[str, Any], unchecked: list[str], console: Console
) -> None:
    """Print what was checked, what was not, and the estimate."""
    processes = prepared.world.processes
    size = f"{found.parameters:,} parameters ({found.active_parameters:,} active, {found.trained_parameters:,} trained)"
    states, activations = amount(found.states_gib), amount(found.activations_gib)
    memory = f"{states} of weights and states + {activations} of activations per process"
    steps = f"{prepared.config.train.max_steps:,} steps"
    each = f"each {found.row_tokens:,.0f} tokens at most" if prepared.rows.record.get("assumed") else ""
    lines = {
        "network": f"{prepared.plan.config.family}, {size}",
        "rows": f"{_sources(prepared)}; {each or f'{found.row_tokens:,.0f} tokens on average'}",
        "left out": skipped_text(prepared.rows.record),
        "method": ", ".join(f"{key} {value}" for key, value in described.items() if value is not None),
        "memory": memory + (f" of {processes}" if processes > 1 else ""),
        "fits": _fit(found),
        "time": f"{duration(found.step_s)} per step, {duration(found.total_s)} for {steps} on {prepared.device}",
        "not checked": "\n".join(unchecked),
    }
    table = Table(title="Checked; nothing was trained", title_justify="left", show_header=False)
    for name, value in lines.items():
        if value:
            table.add_row(name, Text(value))
    console.print(table)


def amount(gib: float) -> str:
    """Return a size of memory as text."""
    return f"{gib:,.1f} GiB" if gib >= 1 else f"{gib * 1024:,.1f} MiB"


def duration(seconds: float) -> str:
    """Return a time as text, in the unit that reads best."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:.2g} s"


def _fit(found: Estimate) -> str:
    needed = found.states_gib + found.activations_gib
    if needed <= found.device_gib:
        return ""
    return f"no: {needed:,.0f} GiB per process, this device has {found.device_gib:,.0f}"


def _sources(prepared: Prepared) -> str:
    sources = prepared.rows.record["sources"]
    if isinstance(sources, dict):
        return ", ".join(f"{count:,} of {name}" for name, count in sources.items())
    return ("" if prepared.rows.record.get("assumed") else "stream of ") + ", ".join(sources)
