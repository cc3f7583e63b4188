"""From a run folder to report rows: our score with its interval, upstream's number beside it, and what is missing.

Everything is recomputed from item records; nothing is read from upstream's summary.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError
from dare_eval.evaluators.lead import lead_labels
from dare_eval.evaluators.planning import malformed, planning_notes, planning_values
from dare_eval.records.foreign import foreign_row, reported_row
from dare_eval.records.item_files import read_items
from dare_eval.records.items import ItemRecord
from dare_eval.records.manifest import RunManifest, read_manifest
from dare_eval.records.repeat_rows import repeat_rows
from dare_eval.records.summary import ResultRow, is_scored, summarise
from dare_eval.runtime.failures import Failure, failure_of
from dare_eval.runtime.sidecars import read_sidecar

Z_95 = 1.96


@dataclass(frozen=True, slots=True)
class PairReport:
    """What one model reached on one data set."""

    model: str
    dataset: str
    rows: list[ResultRow]
    """The headline first, then further metrics."""
    failure: Failure | None
    upstream: dict[str, Any]
    malformed: int | None
    notes: list[str] = field(default_factory=list)
    has_result: bool = False
    disputed: int = 0
    """Items on which our scorer and the stock one disagree."""

    @property
    def complete(self) -> bool:
        """Whether every expected item has an answer that was scored, without a failure."""
        return self.failure is None and self.has_result and self.rows[0].complete


def pair_report(work_dir: Path, model: str, dataset: str) -> PairReport:
    """Return the report of one pair; a pair without records gets a row without a value."""
    manifest = manifest_of(work_dir)
    entry = manifest.dataset(dataset) if manifest else None
    maker = manifest.model(model) if manifest else None
    records = records_of(work_dir, model, dataset)
    result = work_dir / "results" / model / f"{dataset}.json"
    notes = read_sidecar(result)["notes"]
    common: dict[str, Any] = {
        "model": model,
        "dataset": dataset,
        "expected": entry.expected if entry else None,
        "decode_spec": (maker.decode_specs.get(dataset) or None) if maker else None,
    }
    kind = notes.get("kind") or ""
    if not records and result.exists() and not notes:  # scored by upstream's own task
        rows = [foreign_row(work_dir, model, dataset)]
    else:
        rows = [_headline(records, notes, common)]
    scored = [record for record in records if is_scored(record)]
    for name, values in planning_values(kind, scored).items():
        graded = [dataclasses.replace(record, value=value) for record, value in zip(scored, values, strict=True)]
        others = [record for record in records if not is_scored(record)]
        rows.append(summarise([*graded, *others], metric=name, graded=True, **common))
    rows += repeat_rows(records, rows[0], ks=notes.get("ks") or (), kind=kind)
    if len(records) > (questions := len({record.question_id for record in records})):
        rows[0] = _labelled(rows[0], f"mean of {len(records) / questions:g} answers per question")
    rows[0] = _labelled(rows[0], *lead_labels(records))
    if entry is not None and entry.subset:
        rows = [_labelled(row, f"subset: {entry.subset}") for row in rows]
    return PairReport(
        model=model,
        dataset=dataset,
        rows=rows,
        failure=failure_of(work_dir, model, dataset),
        upstream=notes.get("upstream") or {"status": "not run", "metric": "", "value": None},
        malformed=malformed(scored),
        notes=planning_notes(kind, records),
        has_result=result.exists(),
        disputed=sum(record.disputed for record in records),
    )


def _headline(records: Sequence[ItemRecord], notes: Mapping[str, Any], common: Mapping[str, Any]) -> ResultRow:
    """Return the first row: our score; upstream's number where no scorer of ours and no verdict per item exists."""
    row = summarise(records, metric=notes.get("metric", "accuracy"), **common)
    upstream = notes.get("upstream") or {}
    if row.n or row.errors or upstream.get("value") is None:
        return row
    row = dataclasses.replace(row, metric=str(upstream["metric"]), labels=["no verdict per item"])
    return reported_row(row, float(upstream["value"]), row.unscored, row.metric)


def _labelled(row: ResultRow, *labels: str) -> ResultRow:
    return dataclasses.replace(row, labels=[*row.labels, *labels])


def records_of(work_dir: Path, model: str, dataset: str) -> list[ItemRecord]:
    """Return the item records of one pair; none when it was never scored."""
    path = work_dir / "records" / model / f"{dataset}.jsonl"
    return read_items(path).records if path.exists() else []


def manifest_of(work_dir: Path) -> RunManifest | None:
    """Return the run's manifest, or None where it was planned by upstream's partitioner."""
    try:
        return read_manifest(work_dir)
    except DataError:
        return None


def group_rows(groups: Sequence[Mapping[str, Any]], headline: Mapping[tuple[str, str], ResultRow]) -> list[ResultRow]:
    """Return one row per summary group and model whose data sets all have a value.

    The mean over data sets (or the weighted mean, as the group says); its interval combines theirs as independent.
    """
    rows = []
    for group in groups:
        subsets = [subset if isinstance(subset, str) else subset[0] for subset in group["subsets"]]
        for model in dict.fromkeys(model for model, _ in headline):
            parts = [headline.get((model, subset)) for subset in subsets]
            whole = [part for part in parts if part is not None and part.value is not None]
            if whole and len(whole) == len(subsets):
                rows.append(_group_row(str(group["name"]), whole, group.get("weights") or {}))
    return rows


def _group_row(name: str, parts: Sequence[ResultRow], weights: Mapping[str, float]) -> ResultRow:
    share = [float(weights.get(part.dataset, 0.0)) if weights else 1.0 for part in parts]
    total = sum(share)
    value = sum(w * (part.value or 0.0) for w, part in zip(share, parts, strict=True)) / total
    halves = [((part.high or 0.0) - (part.low or 0.0)) / (2 * Z_95) for part in parts]
    half = Z_95 * math.sqrt(sum((w / total * one) ** 2 for w, one in zip(share, halves, strict=True)))
    known = [part.expected for part in parts if part.expected is not None]
    return ResultRow(
        model=parts[0].model,
        dataset=name,
        metric="weighted average" if weights else "average",
        value=value,
        low=max(0.0, value - half),
        high=min(100.0, value + half),
        n=sum(part.n for part in parts),
        expected=sum(known) if len(known) == len(parts) else None,
        method="combined intervals of the parts",
        labels=[f"over {len(parts)} data sets"],
    )
