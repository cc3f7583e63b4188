"""``dare-eval plan CONFIG``: hours and GiB of a run before it starts, and what of it cannot work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dare_eval.commands.plan_rows import PlanRow
    from dare_eval.report.devices import Device
    from dare_eval.report.plan_cost import Range


def plan(
    config: Annotated[Path, typer.Argument(help="OpenCompass config, such as configs/eval/tiny_sudoku.py.")],
    device: Annotated[str, typer.Option(help="a100-80, h100, h200, ..., or here: this machine.")] = "here",
    device_tflops: Annotated[
        float | None, typer.Option(min=0.001, help="Peak of another device in the run's compute type.")
    ] = None,
    mem_gib: Annotated[float | None, typer.Option(min=0.1, help="Memory of that device.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N items of each data set.")] = None,
    probe: Annotated[bool, typer.Option("--probe", help="Decode three items per pair to calibrate, here.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Estimate items x forwards x operations of CONFIG as ranges, and flag what cannot run (exit code 2).

    Nothing is downloaded and no weights are read, unless --probe asks for three items. Example:
    dare-eval plan configs/eval/tiny_sudoku.py --device h100
    """
    import os

    os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports the hub's client: planning downloads nothing
    from dare_eval.commands.run_config import load_config, prepare
    from dare_eval.commands.sweep import stdout_to_stderr
    from dare_eval.errors import UsageError

    chosen = _device(device, device_tflops, mem_gib)
    if probe and (device != "here" or device_tflops):
        raise UsageError("--probe measures this machine", seen=f"--device {device}", remedy="leave --device out")
    with stdout_to_stderr():
        cfg = load_config(config)
        prepare(cfg, work_dir=None, fresh=False, limit=limit, scorer=None, workers=None)
        rows = list(_rows(cfg, chosen, probe=probe))
    if as_json:
        total = _total(rows)
        listed = {"device": _about(chosen), "rows": [row.to_dict() for row in rows]}
        typer.echo(json.dumps({**listed, "hours": None if total is None else [total.low, total.high]}, indent=1))
    else:
        _show(rows, chosen)
    _refuse_impossible(rows)


def _refuse_impossible(rows: list[PlanRow]) -> None:
    from dare_eval.commands.plan_rows import NO_DATA
    from dare_eval.errors import DataError, UsageError

    bad = [row for row in rows if row.impossible]
    if not bad:
        return
    reasons = [reason for row in bad for reason in row.impossible]
    kind = DataError if all(reason.startswith(NO_DATA) for reason in reasons) else UsageError
    raise kind(
        f"{len(bad)} of {len(rows)} pairs cannot run as they are",
        seen=f"{bad[0].model} on {bad[0].dataset}: {bad[0].impossible[0]}",
        remedy="see the lines marked with '!'; dare-eval data check says how to get missing data",
    )


def _rows(cfg: Any, device: Device, *, probe: bool) -> Iterator[PlanRow]:
    from dare_eval.commands.plan_rows import plan_row
    from dare_eval.runtime.data_paths import share_data_root

    share_data_root()
    combined = cfg.get("model_dataset_combinations") or [{"models": cfg["models"], "datasets": cfg["datasets"]}]
    for part in combined:
        for model_cfg in part["models"]:
            found = [(dataset_cfg, plan_row(model_cfg, dataset_cfg, device)) for dataset_cfg in part["datasets"]]
            if probe:
                _probe(model_cfg, found)
            yield from (row for _, row in found)


def _probe(model_cfg: Any, found: list[tuple[Any, PlanRow]]) -> None:
    """Load the model once and measure every pair that can run; says so where its weights are not here."""
    from opencompass.utils import build_model_from_cfg

    from dare_eval.commands.plan_probe import probe, probe_prompts
    from dare_eval.errors import DareError
    from dare_eval.runtime.binding import bind_loaded

    usable = [(cfg, row) for cfg, row in found if not row.impossible and row.gen_length is not None]
    if not usable:
        return
    try:
        model = build_model_from_cfg(model_cfg)
    except DareError as error:
        for _, row in usable:
            row.notes.append(f"not probed: {error.what}")
        return
    for dataset_cfg, row in usable:
        bind_loaded(model, model_cfg, dataset_cfg)
        probe(row, model, *probe_prompts(dataset_cfg), int(model_cfg.get("batch_size") or 1))


def _device(name: str, tflops: float | None, mem_gib: float | None) -> Device:
    """Return the device to plan for; ``--device-tflops`` and ``--mem-gib`` describe one or correct a listed one."""
    import dataclasses

    from dare_eval.errors import UsageError
    from dare_eval.report.devices import Device, find_device

    if name == "here" and tflops is not None:
        if mem_gib is None:
            raise UsageError("--device-tflops needs --mem-gib", seen=f"--device-tflops {tflops}")
        return Device(f"{tflops:g} TFLOPS, {mem_gib:g} GiB", tflops, tflops, mem_gib)
    if name == "here":
        from dare_eval.runtime.this_device import this_device

        found = this_device()
    else:
        found = find_device(name)
    return dataclasses.replace(
        found,
        half_tflops=tflops or found.half_tflops,
        single_tflops=tflops or found.single_tflops,
        memory_gib=mem_gib or found.memory_gib,
    )


def _total(rows: list[PlanRow]) -> Range | None:
    from functools import reduce

    known = [row.hours for row in rows if row.hours is not None]
    return reduce(lambda a, b: a + b, known) if known else None


def _about(device: Device) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(device)


def _show(rows: list[PlanRow], device: Device) -> None:
    from dare_eval.commands.plan_text import show_plan
    from dare_eval.panels import output_console

    show_plan(output_console(), rows, device, _total(rows))
