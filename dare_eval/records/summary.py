"""From item records to one row of a table: score with interval, cost per item, and the counts that qualify them.

The row is what ``report.json`` holds. Percent are rounded nowhere here. Leaves out comparisons between rows
(``records.compare``) and averages over benchmarks (``records.repeats.whole_average``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError
from dare_eval.records.atomic import read_json, write_json
from dare_eval.records.cost import cost_of
from dare_eval.records.intervals import Interval, bootstrap, clustered, wilson
from dare_eval.records.items import ItemRecord
from dare_eval.records.shapes import LIST, NUMBER, OBJECT, TEXT, WHOLE, Rules, check_shape
from dare_eval.scoring.base import UNPARSABLE_GOLD

REPORT_NAME = "report.json"
_TYPES: Rules = (
    (("model", "dataset", "metric", "method"), TEXT),
    (("n", "expected", "unrecorded", "errors", "unscored", "unusable_golds"), WHOLE),
    (("value", "low", "high", "nfe", "tpf", "tps", "wall_s", "extraction_rate", "truncated", "eos_share"), NUMBER),
    (("decode_spec",), OBJECT),
    (("labels",), LIST),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One model on one data set in one metric."""

    model: str
    dataset: str
    metric: str
    value: float | None
    """Percent; None when no item could be scored."""
    low: float | None
    high: float | None
    n: int
    """Items scored."""
    expected: int | None
    """Items that should have been scored; None where nobody knows."""
    nfe: float | None = None
    """Batched forwards of the denoiser per item, mean."""
    tpf: float | None = None
    """Tokens per forward: all generated tokens over all forwards."""
    tps: float | None = None
    """Tokens per second of decoding, wall clock."""
    decode_spec: dict[str, Any] | None = None
    method: str | None = None
    """How the interval was found."""
    wall_s: float | None = None
    """Seconds of decoding per item, mean."""
    extraction_rate: float | None = None
    """Percent of scored items in which an answer was found."""
    truncated: float | None = None
    """Percent of scored items cut by the length limit; None where the decoder does not say."""
    eos_share: float | None = None
    """Percent of the canvas that was padding behind the first EOS."""
    unrecorded: int = 0
    """Items a replayed model has no recording of; not part of ``n``."""
    errors: int = 0
    """Items that failed; not part of ``n``."""
    unscored: int = 0
    """Items answered but not scored; not part of ``n``."""
    unusable_golds: int = 0
    """Items whose reference no scorer can read; not part of ``n``: nobody can be right on them."""
    labels: list[str] = field(default_factory=list)
    """What is not known about this row, for results made by others."""

    @property
    def complete(self) -> bool:
        """True when every expected item was scored or is known to be unrecorded or unusable, and at least one was."""
        whole = self.expected is None or self.n + self.unrecorded + self.unusable_golds >= self.expected
        return whole and self.errors == 0 and self.unscored == 0 and (self.n > 0 or self.unrecorded > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as ``report.json`` holds it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ResultRow:
        """Return the row that :meth:`to_dict` stored; raises ``DataError`` naming a missing or wrong field."""
        known = {spec.name for spec in dataclasses.fields(cls)}
        check_shape(record, _TYPES, "report row", needed=("model", "dataset", "metric", "n"))
        if not all(isinstance(label, str) for label in record.get("labels") or ()):
            raise DataError("report row whose labels are not texts", seen=repr(record["labels"])[:80])
        own = {key: value for key, value in record.items() if key in known and value is not None}
        return cls(**({"value": None, "low": None, "high": None, "expected": None} | own))


def summarise(
    records: Sequence[ItemRecord],
    *,
    model: str,
    dataset: str,
    metric: str = "accuracy",
    graded: bool = False,
    expected: int | None = None,
    decode_spec: Mapping[str, Any] | None = None,
) -> ResultRow:
    """Return the row of ``records``: share correct, or mean graded credit with ``graded``.

    Failed, unscored and unrecorded items and those with an unusable reference are counted beside the score and never
    enter it.
    """
    scored = [record for record in records if is_scored(record)]
    interval = score_interval(scored, graded=graded)
    spec = dict(decode_spec) if decode_spec is not None else None
    length = (spec or {}).get("gen_length")
    cost = cost_of(scored, gen_length=length if isinstance(length, int) and length > 0 else None)
    return ResultRow(
        model=model,
        dataset=dataset,
        metric=metric,
        value=_percent(interval.value if interval else None),
        low=_percent(interval.low if interval else None),
        high=_percent(interval.high if interval else None),
        method=interval.method if interval else None,
        n=len(scored),
        expected=expected,
        decode_spec=spec,
        extraction_rate=_share([record.extracted is not None for record in scored]),
        unrecorded=sum(record.unrecorded for record in records),
        errors=sum(record.error is not None for record in records if not record.unrecorded),
        unscored=sum(_is_unscored(record) for record in records),
        unusable_golds=sum(has_unusable_gold(record) for record in records if not record.unrecorded),
        nfe=cost.nfe,
        tpf=cost.tokens_per_forward,
        tps=cost.tokens_per_second,
        wall_s=cost.wall_s,
        truncated=_percent(cost.truncated),
        eos_share=_percent(cost.eos_share),
    )


def score_interval(scored: Sequence[ItemRecord], *, graded: bool = False) -> Interval | None:
    """Return the mean score with its interval, as shares; None without an item.

    Wilson for 0/1 verdicts, clustered by question when questions repeat, percentile bootstrap for graded credit.
    Where a method would claim certainty from too little (one value, or one question), the interval is [0, 1].
    """
    if not scored:
        return None
    ordered = sorted(scored, key=lambda record: record.item_id)  # the interval does not depend on the file's order
    values = [credit(record, graded=graded) for record in ordered]
    questions = [record.question_id for record in ordered]
    groups, mean, n = len(set(questions)), sum(values) / len(values), len(values)
    if groups == n and all(value in (0.0, 1.0) for value in values):
        return wilson(int(sum(values)), n)
    if groups == 1:
        return Interval(mean, 0.0, 1.0, n, "one question")
    if mean in (0.0, 1.0):  # every repeat of every question agrees: no variance to see, count questions
        return dataclasses.replace(wilson(int(mean * groups), groups), n=n, method="wilson over questions")
    if graded:
        return bootstrap(values, clusters=questions if groups < n else None)
    found = clustered(values, questions)
    return dataclasses.replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def credit(record: ItemRecord, *, graded: bool) -> float:
    """Return the share of credit a scored item gives."""
    if graded and record.value is not None:
        return float(record.value)
    return float(bool(record.correct))


def is_scored(record: ItemRecord) -> bool:
    """Return whether an item enters the score."""
    answered = not record.unrecorded and record.error is None and record.correct is not None
    return answered and not has_unusable_gold(record)


def has_unusable_gold(record: ItemRecord) -> bool:
    """Return whether our scorer could not read the item's reference."""
    return record.error is None and record.rule == UNPARSABLE_GOLD


def write_report(folder: Path, rows: Sequence[ResultRow]) -> Path:
    """Write ``report.json`` into ``folder`` in one step and return its path."""
    path = folder / REPORT_NAME
    write_json(path, [row.to_dict() for row in rows])
    return path


def read_report(path: Path) -> list[ResultRow]:
    """Return the rows of a ``report.json``; raises ``DataError`` when it is missing, damaged or of another shape."""
    found = read_json(path, "report")
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise DataError("report is not a list of rows", seen=path)
    return [ResultRow.from_dict(row) for row in found]


def _is_unscored(record: ItemRecord) -> bool:
    return record.correct is None and record.error is None and not record.unrecorded


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _share(flags: Sequence[bool]) -> float | None:
    return 100.0 * sum(flags) / len(flags) if flags else None
