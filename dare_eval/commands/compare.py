"""``dare-eval compare A B``: the difference between two runs on the same items, and whether it is more than noise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dare_eval.commands.options import takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dare_eval.records.compare import Comparison
    from dare_eval.records.runs import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of a comparison."""

    a: Annotated[str, typer.Argument(metavar="A", help="Run folder, report.json, run id or checkpoint name.")]
    b: Annotated[str, typer.Argument(metavar="B", help="The same for the second run; differences are B minus A.")]
    bench: Annotated[list[str] | None, typer.Option("--bench", help="Only this data set (repeat for several).")] = None
    model_a: Annotated[str | None, typer.Option(help="Model of A, where the run has several.")] = None
    model_b: Annotated[str | None, typer.Option(help="Model of B, where the run has several.")] = None
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="Setting that may differ (it is still labelled), as prompt_hash."),
    ] = None
    items: Annotated[int, typer.Option(min=0, help="Flipped items to show per data set.")] = 5
    templates: Annotated[int, typer.Option(min=0, help="Summarise over at least this many prompt templates.")] = 0
    db: Annotated[str | None, typer.Option(help="Store for checkpoint names; default DARE_DB.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False


@takes(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare two runs item by item: delta, interval, p, wins and losses, flipped items, unequal budgets.

    Refuses (exit code 2) when prompts, templates, extractors, lengths or items make the scores different
    measurements on every data set. Example: dare-eval compare runs/base runs/trained --bench tiny_sudoku
    """
    from dataclasses import asdict

    from dare_eval.commands.compare_text import show_comparison
    from dare_eval.panels import output_console
    from dare_eval.records.compare import compare_runs, pick_model
    from dare_eval.records.locate import locate
    from dare_eval.records.templates import over_templates

    left, right = locate(options.a, options.db), locate(options.b, options.db)
    model_a, model_b = options.model_a or left.model, options.model_b or right.model
    _tell_damage([(left.run, model_a), (right.run, model_b)], options.bench)
    found = compare_runs(
        left.run,
        right.run,
        model_a=model_a,
        model_b=model_b,
        benches=options.bench or (),
        allow=options.allow or (),
    )
    sides = (left.run, model_a, "--model-a"), (right.run, model_b, "--model-b")
    found = _with_floors(found, [(run, pick_model(run, name, option)) for run, name, option in sides], options.db)
    spread = over_templates(found.benchmarks, options.templates) if options.templates else []
    if options.as_json:
        typer.echo(json.dumps(found.to_dict() | {"templates": [asdict(row) for row in spread]}, indent=1))
    else:
        show_comparison(found, output_console(), items=options.items, templates=spread)
    _refuse_if_nothing_compared(found)


def _tell_damage(sides: Sequence[tuple[Run, str | None]], benches: Sequence[str] | None) -> None:
    """Name on stderr what of the runs could not be read: what a comparison leaves out must be known."""
    from dare_eval.records.run_damage import run_damage

    notes: dict[str, None] = {}
    for run, model in sides:
        pairs = [(m, d) for m, d in run.results() if model in (None, m) and (not benches or d in benches)]
        notes |= dict.fromkeys(run_damage(run, pairs))
    for note in notes:
        typer.echo(note, err=True)


def _with_floors(found: Comparison, sides: Sequence[tuple[Run, str]], db: str | None) -> Comparison:
    """Return ``found`` with the noise floors the store knows; a store that cannot be read is said, not fatal."""
    from dare_eval.errors import DareError
    from dare_eval.records.database import exists
    from dare_eval.records.noise import with_floors
    from dare_eval.records.store import Store

    if not exists(db):
        return found
    try:
        return with_floors(found, Store(db).engine, *sides)
    except DareError as error:
        typer.echo(f"noise floors are not known: {error.what}", err=True)
        return found


def _refuse_if_nothing_compared(found: object) -> None:
    from dare_eval.errors import IncompleteError, UsageError
    from dare_eval.records.compare import Comparison

    assert isinstance(found, Comparison)
    if any(bench.test is not None for bench in found.benchmarks):
        return
    if not found.benchmarks:
        raise IncompleteError("the runs have no data set in common", seen="; ".join(found.missing) or "no results")
    blocking = sorted({d.name for bench in found.benchmarks for d in bench.comparability.refused()})
    reasons = "; ".join(dict.fromkeys(reason for bench in found.benchmarks for reason in bench.refused))
    raise UsageError(
        "not comparable: no difference of these runs is a difference of the models",
        seen=reasons or "no item is scored in both runs",
        allowed="the same prompt, template, extractor, length and items",
        remedy=" ".join(f"--allow {name}" for name in blocking if name != "items") or "evaluate both on the same items",
    )
