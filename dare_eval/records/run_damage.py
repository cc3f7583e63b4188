"""What of one run's own files could not be read, as lines for people; nothing here needs the store."""

from __future__ import annotations

from collections.abc import Iterable

from dare_eval.errors import DareError
from dare_eval.records.runs import Run
from dare_eval.records.safe import one_line


def run_damage(run: Run, pairs: Iterable[tuple[str, str]] | None = None) -> list[str]:
    """Return one line per problem: manifest, report, then each record line of ``pairs`` (default: all) not read."""
    notes = list(run.problems)
    try:
        run.report()
    except DareError as error:
        notes.append(f"report.json is not used: {error.what}")
    for model, dataset in run.results() if pairs is None else pairs:
        try:
            problems = run.items(model, dataset).problems
        except DareError as error:
            notes.append(f"{model} {dataset}: {error.what}")
            continue
        notes += [f"{model} {dataset}: line {one.line} not read: {one.kind}: {one.message}" for one in problems]
    return [one_line(f"{run.run_id}: {note}", 400) for note in dict.fromkeys(notes)]
