"""All result rows of one run, recomputed from its item records; what cannot be known is a label, not a gap.

Rows that only ``report.json`` has (metrics without item records, such as perplexities) are taken from there and
say so. A pair of model and data set that was planned but left no record is a row with ``n = 0``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from dare_eval.errors import DareError
from dare_eval.records.foreign import foreign_row
from dare_eval.records.items import ItemRecord
from dare_eval.records.repeat_rows import repeat_rows
from dare_eval.records.runs import Run
from dare_eval.records.summary import ResultRow, credit, is_scored, summarise

UNREADABLE = "?"
"""Model, data set and metric of the row that stands for a report that cannot be read."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One row and the settings it was measured with."""

    row: ResultRow
    settings: dict[str, Any]


def run_rows(run: Run) -> list[RunRow]:
    """Return every row of ``run``: verdicts, graded credit where it differs, and what else its report holds."""
    rows: list[RunRow] = []
    for model, dataset in sorted(set(run.results()) | set(_planned(run))):
        settings = run.settings(model, dataset)
        found = [foreign_row(run.folder, model, dataset)] if run.origin == "opencompass" else _own(run, model, dataset)
        rows.extend(RunRow(row, settings) for row in found)
    return rows + _report_only(run, {(r.row.model, r.row.dataset, r.row.metric) for r in rows})


def has_graded(records: list[ItemRecord]) -> bool:
    """Return whether some scored item's credit is more, or less, than its verdict."""
    return any(credit(r, graded=True) != credit(r, graded=False) for r in records if is_scored(r))


def _own(run: Run, model: str, dataset: str) -> list[ResultRow]:
    settings = run.settings(model, dataset)
    entry = run.manifest.dataset(dataset) if run.manifest else None
    labels = [*run.problems, *run.failures(model, dataset)] + (
        [f"subset: {entry.subset}"] if entry and entry.subset else []
    )
    records: list[ItemRecord] = []
    try:
        file = run.items(model, dataset)
        records = file.records
        labels += [f"line {p.line}: {p.kind}: {p.message}" for p in file.problems]
    except DareError as error:
        labels.append(error.what)
    spec = settings.get("decode_spec")
    if not spec:
        labels.append("decode spec unknown")
    metrics = [(entry.metric if entry else "accuracy", False)]
    if has_graded(records):
        metrics.append((run.graded_metric(dataset), True))
    expected = entry.expected if entry else None
    rows = [
        summarise(
            records, model=model, dataset=dataset, metric=name, graded=graded, expected=expected, decode_spec=spec
        )
        for name, graded in metrics
    ]
    rows += repeat_rows(records, rows[0], kind=str(settings.get("scorer") or "").partition("@")[0])
    return [dataclasses.replace(row, labels=labels) for row in rows]


def _planned(run: Run) -> list[tuple[str, str]]:
    if run.manifest is None or run.origin == "opencompass":
        return []
    return [(model.name, dataset) for model in run.manifest.models for dataset in model.decode_specs]


def _report_only(run: Run, known: set[tuple[str, str, str]]) -> list[RunRow]:
    try:
        report = run.report()
    except DareError as error:
        return [RunRow(_unreadable(error.what), {})]
    pairs = {(model, dataset) for model, dataset, _ in known}
    rows = []
    for row in report:
        if (row.model, row.dataset, row.metric) in known:
            continue
        label = "from report.json" + ("" if (row.model, row.dataset) in pairs else "; no item records")
        labelled = dataclasses.replace(row, labels=[*row.labels, label])
        rows.append(RunRow(labelled, run.settings(row.model, row.dataset)))
    return rows


def _unreadable(what: str) -> ResultRow:
    no = UNREADABLE
    return ResultRow(
        model=no, dataset=no, metric=no, value=None, low=None, high=None, n=0, expected=None, labels=[what]
    )
