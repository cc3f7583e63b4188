"""``dare-eval sweep MODEL CONFIG --steps ...``: one run over a grid of decode settings, and what it shows."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dare_eval.commands.options import takes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dare_eval.records.runs import Run
    from dare_eval.report.sweep import Point
    from dare_eval.runtime.sweep_config import Sweep

Values = Annotated[str | None, typer.Option(help="Values, separated by commas.", show_default=False)]
SWEPT = ("policy", "cache", "block_length", "gen_length", "steps", "threshold", "factor", "temperature")
"""Decode settings that have an option of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """The options of a sweep."""

    model: Annotated[str, typer.Argument(help="A model of CONFIG or of the preset table, a folder or a hub id.")]
    config: Annotated[Path, typer.Argument(help="OpenCompass config that names the data sets.")]
    policy: Annotated[str | None, typer.Option(help="Policies, separated by commas, or all.")] = None
    cache: Annotated[str | None, typer.Option(help="Caches, separated by commas, or all.")] = None
    steps: Values = None
    threshold: Values = None
    factor: Values = None
    block_length: Values = None
    gen_length: Values = None
    temperature: Values = None
    others: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other decode setting: key=v1,v2 or key=[a,b],[c,d]; repeatable."),
    ] = None
    templates: Annotated[int, typer.Option(min=0, help="Ask in this many equivalent prompt templates.")] = 0
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N items of each data set.")] = None
    work_dir: Annotated[Path | None, typer.Option("--work-dir", "-w", help="Folder of the runs.")] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew even if the last run was interrupted.")] = False
    workers: Annotated[int | None, typer.Option(min=1, help="Processes per setting.")] = None
    db: Annotated[str | None, typer.Option(help="Store; default DARE_DB, else sqlite:///runs/.dare.db.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON; progress goes to stderr.")] = False


@takes(SweepOptions)
def sweep(options: SweepOptions) -> None:
    """Decode the data sets of CONFIG under every combination of the values, and print quality against forwards.

    A policy takes the fields it reads; combinations that cannot work are listed with the reason. The run enters the
    store. Example: dare-eval sweep tiny-sudoku configs/eval/tiny_sudoku.py --policy quota,threshold --steps 16,8,4
    """
    from dare_eval.commands.run_config import load_config, prepare
    from dare_eval.commands.sweep_model import base_model
    from dare_eval.panels import output_console
    from dare_eval.runtime.sweep_config import datasets_for, plan_sweep
    from dare_eval.runtime.sweep_grid import parse_grid

    named = {name: getattr(options, name) for name in SWEPT}
    grid = parse_grid(named, options.others or [])
    config, fresh = options.config, options.fresh
    cfg = load_config(config)
    name = options.model.rstrip("/").rpartition("/")[2]
    place = options.work_dir or Path("runs/sweep") / f"{name}-{config.stem}"
    folder = prepare(cfg, work_dir=place, fresh=fresh, limit=options.limit, scorer=None, workers=options.workers)
    base = base_model(options.model, cfg)
    planned = plan_sweep(base, datasets_for(base, cfg), grid, options.templates)
    cfg["models"], cfg["datasets"] = planned.models, planned.datasets
    cfg["model_dataset_combinations"] = combinations(planned)
    code = run_quietly(cfg, config.name, folder, fresh=fresh)
    run, points = _results(folder, planned, templated=options.templates > 0)
    stored = _register(run, options.db)
    if options.as_json:
        typer.echo(json.dumps(_record(run, planned, points, stored), indent=1))
    else:
        from dare_eval.commands.sweep_text import show_sweep

        show_sweep(output_console(), planned, points)
        typer.echo(f"run:   {run.folder}\nstore: evaluation {stored}; type: dare-eval show {run.folder}")
    if code:
        raise typer.Exit(code)


def combinations(planned: Sweep) -> list[dict[str, Any]]:
    """Return which settings run on which data sets, settings of the same data sets together."""
    joined: dict[tuple[str, ...], dict[str, Any]] = {}
    for pair in planned.combinations:
        names = tuple(cfg["abbr"] for cfg in pair["datasets"])
        joined.setdefault(names, {"models": [], "datasets": pair["datasets"]})["models"] += pair["models"]
    return list(joined.values())


def to_plain(value: Any) -> Any:
    """Return a config value as plain lists and dictionaries, whose ``repr`` is the config again."""
    if isinstance(value, dict):
        return {key: to_plain(entry) for key, entry in value.items()}
    return [to_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def run_quietly(cfg: Any, name: str, folder: Path, *, fresh: bool) -> int:
    """Run OpenCompass on ``cfg`` with its output on stderr; return its exit code when results exist all the same."""
    import tempfile

    from dare_eval.commands.run import opencompass_file
    from dare_eval.commands.run_config import unfinished_run
    from dare_eval.errors import IncompleteError

    earlier = None if fresh else unfinished_run(folder)
    arguments = ["-w", str(folder), *(["-r", earlier] if earlier else [])]
    with tempfile.TemporaryDirectory(prefix="dare-sweep-") as place, stdout_to_stderr():
        written = Path(place) / name
        written.write_text("".join(f"{key} = {to_plain(cfg[key])!r}\n" for key in cfg))  # dump() formats for minutes
        try:
            opencompass_file(written, arguments)
        except SystemExit as end:
            if end.code not in (None, 0, IncompleteError.exit_code):
                raise
            return int(end.code or 0)
    return 0


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send standard output to standard error, for child processes too, so that a table or JSON stands alone."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _results(folder: Path, planned: Sweep, *, templated: bool) -> tuple[Run, list[Point]]:
    """Return the run just made and one point per setting and data set, fewest forwards first."""
    from dare_eval.records.runs import TIMESTAMP, load_run
    from dare_eval.report.sweep import Point
    from dare_eval.runtime.report_rows import pair_report, records_of

    run = load_run(max(path for path in folder.iterdir() if TIMESTAMP.fullmatch(path.name)))
    points = []
    for pair in planned.combinations:
        model = pair["models"][0]["abbr"]
        setting = planned.settings[model]
        for dataset in (cfg["abbr"] for cfg in pair["datasets"]):
            base, _, template = dataset.rpartition("@") if templated else (dataset, "", "")
            points.append(
                Point(
                    setting=setting.label,
                    curve=setting.curve,
                    dataset=dataset,
                    base=base,
                    template=template or None,
                    row=pair_report(run.folder, model, dataset).rows[0],
                    records=records_of(run.folder, model, dataset),
                )
            )
    return run, sorted(points, key=lambda one: (one.dataset, one.row.nfe or float("inf"), -(one.row.value or 0.0)))


def _register(run: Run, db: str | None) -> int:
    from dare_eval.records.store import Store

    return Store(db).register_evaluation(run.folder, strict=True)


def _record(run: Run, planned: Sweep, points: Sequence[Point], stored: int) -> dict[str, Any]:
    from dataclasses import asdict

    from dare_eval.report.sweep import to_dict

    skipped = [asdict(one) for one in planned.skipped]
    return {"run": str(run.folder), "evaluation": stored, "skipped": skipped, **to_dict(points)}
