"""``dare-eval noise CONFIG``: how many answers flip when only batch size, attention back end or dtype changes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dare_eval.commands.options import takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dare_eval.records.noise import Floor
    from dare_eval.runtime.noise_config import Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseOptions:
    """The options of a measurement of noise."""

    config: Annotated[Path, typer.Argument(help="OpenCompass config, such as configs/eval/tiny_sudoku.py.")]
    batch_sizes: Annotated[str, typer.Option(help="Batch sizes beside the config's own, by commas.")] = "1,8"
    attention: Annotated[str, typer.Option(help="Attention back ends beside the config's own, by commas.")] = "flex"
    dtypes: Annotated[str, typer.Option(help="Compute types beside the config's own, by commas.")] = "bfloat16"
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N items of each data set.")] = None
    work_dir: Annotated[Path | None, typer.Option("--work-dir", "-w", help="Folder of the runs.")] = None
    workers: Annotated[int | None, typer.Option(min=1, help="Processes per model.")] = None
    db: Annotated[str | None, typer.Option(help="Store; default DARE_DB, else sqlite:///runs/.dare.db.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON; progress goes to stderr.")] = False


@takes(NoiseOptions)
def noise(options: NoiseOptions) -> None:
    """Run CONFIG as it is and once per changed setting, and store the item flip rate as a floor under differences.

    A back end that this machine lacks is a failed model of the run; the others count. dare-eval compare shows the
    floor. Example: dare-eval noise configs/eval/tiny_sudoku.py --batch-sizes 1,16 --dtypes bfloat16
    """
    from dare_eval.commands.run_config import load_config, prepare
    from dare_eval.commands.sweep import run_quietly
    from dare_eval.errors import IncompleteError
    from dare_eval.records.noise import write_noise
    from dare_eval.records.store import Store
    from dare_eval.runtime.noise_config import ATTENTION, BATCH, DTYPE, plan_noise

    attention, dtypes = _names(options.attention), _names(options.dtypes)
    _check_names(attention, dtypes)
    axes: dict[str, list[Any]] = {BATCH: _whole(options.batch_sizes), ATTENTION: attention, DTYPE: dtypes}
    cfg = load_config(options.config)
    place = options.work_dir or Path("runs/noise") / options.config.stem
    folder = prepare(cfg, work_dir=place, fresh=True, limit=options.limit, scorer=None, workers=options.workers)
    planned = plan_noise(cfg, axes)
    cfg["models"], cfg["datasets"] = planned.models, planned.datasets
    cfg["model_dataset_combinations"] = planned.combinations
    code = run_quietly(cfg, options.config.name, folder, fresh=True)
    run, floors = _floors(folder, planned)
    if not floors:
        raise IncompleteError("no variation gave a result to compare", seen=run, remedy=f"dare-eval show {run}")
    write_noise(run, floors)
    Store(options.db).register_evaluation(run)
    if options.as_json:
        from dataclasses import asdict

        typer.echo(json.dumps({"run": str(run), "floors": [asdict(one) for one in floors]}, indent=1))
    else:
        _show(floors, run)
    if code:
        raise typer.Exit(code)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _check_names(attention: Sequence[str], dtypes: Sequence[str]) -> None:
    """Refuse names that no machine knows before anything runs; one that this machine lacks is a failed model."""
    from dare_eval.errors import unknown
    from dare_eval.networks.attention.plan import check_backend
    from dare_eval.networks.loading import DTYPES

    for name in attention:
        check_backend(name)
    for name in dtypes:
        if name not in DTYPES:
            raise unknown("dtype", name, DTYPES)


def _whole(text: str) -> list[int]:
    from dare_eval.errors import UsageError

    try:
        found = [int(part) for part in _names(text)]
    except ValueError:
        found = [0]
    if any(value < 1 for value in found):
        raise UsageError("a batch size is no whole number above 0", seen=text, remedy="--batch-sizes 1,8")
    return found


def _floors(folder: Path, planned: Noise) -> tuple[Path, list[Floor]]:
    """Return the run just made and the floor of every model on every data set."""
    from dare_eval.errors import DareError
    from dare_eval.records.runs import TIMESTAMP, load_run
    from dare_eval.report.noise import Variation, noise_floor

    run = load_run(max(path for path in folder.iterdir() if TIMESTAMP.fullmatch(path.name)))
    bases = {variant.base for variant in planned.variants}
    floors = []
    for model, dataset in run.results():
        if model not in bases:
            continue
        others = []
        for variant in planned.variants:
            try:
                if variant.base == model:
                    records = run.items(variant.abbr, dataset).records
                    others.append(Variation(axis=variant.axis, value=variant.value, records=records))
            except DareError as error:  # a back end that is not on this machine: its failure is in the run
                typer.echo(f"{variant.abbr} on {dataset}: {error.what}", err=True)
        weights = run.settings(model, dataset).get("weight_hash")
        floor = noise_floor(model, dataset, weights, run.items(model, dataset).records, others)
        floors += [floor] if floor is not None else []
    return run.folder, floors


def _show(floors: Sequence[Floor], run: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from dare_eval.panels import output_console

    table = Table(title="Answers that changed with nothing but the machine's arithmetic", title_justify="left")
    for name in ("model", "benchmark", "changed", "n", "verdicts flipped", "other responses", "score moved by"):
        table.add_column(name, justify="left" if name in ("model", "benchmark", "changed") else "right")
    for floor in floors:
        for one in floor.variations:
            cells = [floor.model, floor.dataset, f"{one['axis']} {one['value']}", str(one["n"])]
            shares = [f"{100 * one[key] / one['n']:.2f} %" for key in ("flips", "other_texts")]
            table.add_row(*map(Text, [*cells, *shares, f"{one['delta']:+.2f}"]))
    output_console().print(table)
    for floor in floors:
        bounds = f"[{floor.low:.2f}, {floor.high:.2f}]"
        typer.echo(f"noise floor of {floor.model} on {floor.dataset}: {floor.flip_rate:.2f} % of items flip {bounds}")
    typer.echo(f"run:   {run}\nstore: kept; dare-eval compare shows the floor under each difference")
