"""``dare-eval report RUN... --against BASELINE``: what ran, and whether it gives the recorded numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dare_eval.records.runs import Run
    from dare_eval.report.recorded import Baseline
    from dare_eval.report.reproducibility import RunReport


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, report.json files, ids or names.")],
    against: Annotated[
        str | None, typer.Option(help="Recorded numbers: a run, report.json, a file of --save, or a card (name, YAML).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.md, report.html and report.xml (JUnit).")] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the numbers of RUN... in this file, to compare with.")] = None,
    db: Annotated[str | None, typer.Option(help="Store for names of runs; default DARE_DB.")] = None,
) -> None:
    """Report what ran with all hashes and versions, and judge each number: match, within interval or off.

    Without --against, further runs are judged against the first one. Exit code 3 when a number is off, missing or
    incomplete. Example: dare-eval report runs/mine --against baseline.json --out report
    """
    from dare_eval.records.locate import locate
    from dare_eval.report.recorded import baseline_of, write_baseline
    from dare_eval.report.reproducibility import report_run

    found = [locate(name, db).run for name in runs]
    if save is not None:
        write_baseline(save, [baseline_of(run) for run in found])
    judged = found if against or len(found) == 1 else found[1:]
    first = baseline_of(found[0]) if len(found) > 1 and not against else None
    known = [find_baseline(against, run, db) if against else first for run in judged]
    write_reports([report_run(run, one) for run, one in zip(judged, known, strict=True)], out)


def find_baseline(name: str, run: Run, db: str | None) -> Baseline:
    """Return the recorded numbers that ``name`` means for ``run``: a published card, a file, or another run."""
    from dare_eval.errors import DataError, nearest
    from dare_eval.presets.cards import find_card, known_cards
    from dare_eval.records.locate import locate
    from dare_eval.records.runs import is_run
    from dare_eval.report.published import baseline_of_card
    from dare_eval.report.recorded import baseline_of, read_baseline

    path = Path(name)
    if path.suffix in (".yaml", ".yml") or (name in known_cards() and not path.exists()):
        return baseline_of_card(find_card(name), run)
    if path.is_file():
        kept = read_baseline(path)  # a report.json beside the items that are used was named, so it must be readable
        if not (path.name == "report.json" and is_run(path.parent)):
            return kept
    try:
        return baseline_of(locate(name, db).run)
    except DataError as error:
        hint = None if path.exists() else nearest(name, known_cards())
        if hint is None:
            raise
        what = f"{error.what}; did you mean the card '{hint}'?"
        raise DataError(what, seen=name, allowed=f"{error.allowed}; a card", remedy=f"dare-eval cards {hint}") from None


def write_reports(reports: Sequence[RunReport], out: Path | None) -> None:
    """Write the three files into ``out`` (or Markdown to standard output); raises ``IncompleteError`` when off."""
    from dare_eval.errors import IncompleteError
    from dare_eval.records.atomic import write_atomic
    from dare_eval.records.safe import one_line
    from dare_eval.report.document import to_html, to_markdown
    from dare_eval.report.junit import to_junit
    from dare_eval.report.reproducibility import renamed, to_document, verdict_of

    document = to_document(reports)
    if out is None:
        typer.echo(to_markdown(document), nl=False)
    else:
        for name, text in (("md", to_markdown(document)), ("html", to_html(document)), ("xml", to_junit(reports))):
            write_atomic(out / f"report.{name}", text)
        typer.echo(f"{verdict_of(reports)}: {out / 'report.md'}, {out / 'report.html'}, {out / 'report.xml'}")
    for line in renamed(reports):
        typer.echo(one_line(line, 400), err=True)
    bad = [(report.run, one) for report in reports for one in report.bad]
    if bad:
        lines = [f"{one.model} on {one.dataset}, {one.metric}: {one.verdict}: {one.reason}" for _, one in bad]
        total = sum(len(report.judgements) for report in reports)
        raise IncompleteError(
            f"{len(bad)} of {total} numbers are off or missing",
            seen="\n".join(lines[:20]),
            remedy=_remedy(bad[0][0]),
        )


def _remedy(run: Run) -> str:
    return f"run it again with the recorded settings, or record these: dare-eval report {run.folder} --save FILE"
