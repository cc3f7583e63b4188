"""``dare-eval reproduce CARD``: measure what a card reports, and say whether it comes out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dare_eval.presets.cards import Card


def reproduce(
    card: Annotated[str, typer.Argument(help="A card (dare-eval cards), such as tiny-sudoku/sudoku4, or a YAML file.")],
    path: Annotated[str | None, typer.Option(help="Checkpoint in the place of the model's own.")] = None,
    work_dir: Annotated[
        Path | None, typer.Option("--work-dir", "-w", help="Folder of the runs; default runs/reproduce/CARD.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.md, report.html and report.xml; default the run's.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N items: a quick look, not a claim.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes per model.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew even if the last run was interrupted.")] = False,
) -> None:
    """Run a published number's model, benchmark and settings, and judge the result: match, within interval or off.

    Exit code 3 when it is off or incomplete, 2 when the source states too little to run anything.
    """
    from dare_eval.commands.report import write_reports
    from dare_eval.presets.cards import find_card
    from dare_eval.records.runs import TIMESTAMP, load_run
    from dare_eval.report.published import baseline_of_card
    from dare_eval.report.reproducibility import report_run

    found = find_card(card)
    _refuse_unknown_settings(found)
    folder = work_dir or Path("runs/reproduce") / found.name.replace("/", "-").replace("@", "-")
    _evaluate(found, folder, path=path, limit=limit, workers=workers, fresh=fresh)
    newest = max(place for place in folder.iterdir() if TIMESTAMP.fullmatch(place.name))  # also when incomplete
    run = load_run(newest)
    typer.echo(f"card:  {found.name}: {found.score:.{found.decimals}f} ({found.source})\nrun:   {run.folder}")
    write_reports([report_run(run, baseline_of_card(found, run))], out or run.folder / "reproducibility")


def _refuse_unknown_settings(card: Card) -> None:
    from dare_eval.errors import UsageError

    if card.spec is None:
        raise UsageError(
            f"card '{card.name}' cannot be run: its source states no settings",
            seen=card.source,
            remedy="dare-eval cards lists those that can; to judge a run of yours: dare-eval report RUN --against CARD",
        )
    if not card.runnable:
        raise UsageError(
            f"card '{card.name}' cannot be run: this program has no benchmark or model of that name",
            seen=f"{card.model} on {card.benchmark}",
            remedy="dare-eval ls benchmarks, dare-eval ls models",
        )


def _evaluate(
    card: Card, folder: Path, *, path: str | None, limit: int | None, workers: int | None, fresh: bool
) -> None:
    """Run the evaluation; what OpenCompass ends with is an error only when there is nothing to judge."""
    from dare_eval.commands.run import run
    from dare_eval.errors import IncompleteError, UsageError

    if card.config is not None and path is not None:
        raise UsageError(
            f"card '{card.name}' is about the shipped checkpoint", seen=f"--path {path}", remedy="leave --path out"
        )
    options = {"work_dir": folder, "fresh": fresh, "limit": limit, "workers": workers}
    try:
        if card.config is not None:
            packaged = Path(__file__).parents[1] / "configs" / "eval" / f"{card.config}.py"
            named = packaged if packaged.exists() else Path(card.config)
            run(config=named, **options)
        else:
            run(model=[card.model], bench=[str(card.bench)], change=_changes(card), path=path, **options)
    except SystemExit as end:
        if end.code not in (None, 0, IncompleteError.exit_code):
            raise


def _changes(card: Card) -> list[str]:
    """Return the card's settings as ``--set`` takes them, so that nothing depends on the preset table."""
    prefix = "likelihood." if card.likelihood else ""
    return [f"{prefix}{key}={'null' if value is None else value}" for key, value in (card.spec or {}).items()]
