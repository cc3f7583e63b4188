"""Does a result reproduce a recorded number? match, within interval, or off, with the setting that differs by name.

``match``: the same score (to the digits the source prints) and, where both sides know them, the same items right.
``within interval``: the recorded score lies in the 95 % interval of this run. ``off``: it does not, the result is
incomplete, or something was measured differently: a decode parameter, prompt, data, extractor, weights. Versions and
machine never decide; they are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.records.intervals import wilson
from dare_eval.records.run_rows import RunRow
from dare_eval.records.summary import ResultRow
from dare_eval.report.recorded import UNEQUAL_ANYWAY, Baseline, Recorded

MATCH, WITHIN, OFF, MISSING, NEW = "match", "within interval", "off", "missing", "not recorded"
GOOD = (MATCH, WITHIN, NEW)
_NAMES = {
    "weight_hash": "weights",
    "content_hash": "items (content hash)",
    "prompt_hash": "prompt (hash)",
    "task_template": "prompt template",
    "max_out_len": "longest answer",
}
_SKIPPED = frozenset((*UNEQUAL_ANYWAY, "seed", "family", "decode_spec"))
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that is not as recorded."""

    name: str
    recorded: str
    now: str

    def __str__(self) -> str:
        return f"{self.name} {self.recorded} -> {self.now}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One result of a run against one recorded number."""

    model: str
    dataset: str
    metric: str
    found: RunRow | None
    recorded: Recorded | None
    verdict: str
    reason: str
    changed: tuple[Change, ...] = ()

    @property
    def good(self) -> bool:
        """True unless the number is off or missing."""
        return self.verdict in GOOD


def judge_run(
    rows: Sequence[RunRow], outcomes: Mapping[tuple[str, str], str], baseline: Baseline | None
) -> list[Judgement]:
    """Judge every row against the number recorded for its model, data set and metric, in the order of the rows.

    Where run and baseline hold one model each, the models' names may differ. Recorded numbers that the run lacks are
    ``missing`` at the end, unless the baseline is a table of which the run is a part.
    """
    known = {number.key: number for number in (baseline.numbers if baseline else ())}
    renamed = _only_model(known.values())
    single = len({found.row.model for found in rows}) == 1
    used: set[tuple[str, str, str]] = set()
    judged = []
    for found in rows:
        key = (found.row.model, found.row.dataset, found.row.metric)
        if key not in known and renamed is not None and single:
            key = (renamed, *key[1:])
        used.add(key)
        judged.append(judge(found, known.get(key), outcomes.get((found.row.model, found.row.dataset))))
    if baseline is not None and baseline.whole:
        judged += [_missing(number) for key, number in known.items() if key not in used]
    return judged


def judge(found: RunRow, recorded: Recorded | None, outcome: str | None) -> Judgement:
    """Judge one row; ``outcome`` is the hash of its verdicts, where there are any."""
    row = found.row
    changed: tuple[Change, ...] = ()
    if recorded is not None:
        changed = tuple(changes(recorded.settings, found.settings, partial=recorded.partial))
    verdict, reason = _verdict(found, recorded, outcome, changed)
    if recorded is not None and recorded.origin != row.model:
        reason += f"; recorded for model '{recorded.origin}'"
    return Judgement(row.model, row.dataset, row.metric, found, recorded, verdict, reason, changed)


def changes(recorded: Mapping[str, Any], now: Mapping[str, Any], *, partial: bool = False) -> list[Change]:
    """Return the settings that both sides know and that differ; decode settings field by field.

    With ``partial`` only the decode fields that the recorded side states are compared.
    """
    found = []
    spec, own = recorded.get("decode_spec") or {}, now.get("decode_spec") or {}
    names = set(spec) if partial else set(spec) | set(own)
    for name in sorted(names - {"family"}) if spec and own else ():
        if spec.get(name) != own.get(name):
            found.append(Change(name, _text(spec.get(name)), _text(own.get(name))))
    for name in sorted(set(recorded) - _SKIPPED):
        left, right = recorded[name], now.get(name)
        if name == "scorer":  # its version is that of the package, which the environment lists
            left, right = (str(value).partition("@")[0] if value else value for value in (left, right))
        if left is not None and right is not None and left != right:
            found.append(Change(_NAMES.get(name, name), _text(left), _text(right)))
    return found


def environment_changes(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[Change]:
    """Return the environment entries that differ; none when one side knows nothing at all."""
    if not recorded or not now:
        return []
    names = sorted(set(recorded) | set(now))
    return [
        Change(name, recorded.get(name, "absent"), now.get(name, "absent"))
        for name in names
        if recorded.get(name) != now.get(name)
    ]


def _verdict(
    found: RunRow, recorded: Recorded | None, outcome: str | None, changed: Sequence[Change]
) -> tuple[str, str]:
    row = found.row
    if row.value is None:
        return OFF, f"incomplete: no score ({row.n} of {_count(row.expected)} items scored)"
    if not row.complete:
        return OFF, f"incomplete: {row.n} of {_count(row.expected)} items scored, {row.errors} failed"
    failed = [label for label in row.labels if label.startswith("failed (")]
    if failed:
        return OFF, f"incomplete: {failed[0]}"
    if recorded is None:
        return NEW, "no number to compare with"
    if changed:
        return OFF, "measured differently: " + "; ".join(map(str, changed))
    if recorded.n is not None and recorded.n != row.n:
        return OFF, f"measured differently: items {recorded.n} -> {row.n}"
    if _same(row.value, recorded):
        if outcome is not None and recorded.outcome is not None and outcome != recorded.outcome:
            return WITHIN, "same score, but other items are right"
        return MATCH, "same score" + (" and same items right" if outcome and outcome == recorded.outcome else "")
    low, high = interval(row)
    if low is None or high is None:
        return OFF, f"recorded {recorded.value:.2f}; this score has no interval"
    inside = low <= recorded.value <= high
    reason = f"recorded {recorded.value:.2f} is {'in' if inside else 'out'}side [{low:.2f}, {high:.2f}]"
    return (WITHIN if inside else OFF), reason


def interval(row: ResultRow) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a row; of a bare share of ``n`` items Wilson's, else none."""
    if row.low is not None and row.high is not None:
        return row.low, row.high
    if row.value is None or row.n < 1 or not 0 <= row.value <= 100:
        return None, None
    found = wilson(round(row.value * row.n / 100), row.n)
    return 100 * found.low, 100 * found.high


def _same(value: float, recorded: Recorded) -> bool:
    if recorded.decimals is None:
        return abs(value - recorded.value) <= _ROUNDING * max(1.0, abs(recorded.value))
    return abs(value - recorded.value) <= 0.5 * 10.0**-recorded.decimals + _ROUNDING


def _missing(number: Recorded) -> Judgement:
    return Judgement(*number.key, None, number, MISSING, "recorded, but this run has no such result")


def _only_model(numbers: Iterable[Recorded]) -> str | None:
    names = {number.model for number in numbers}
    return names.pop() if len(names) == 1 else None


def _text(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:16]}..."


def _count(expected: int | None) -> str:
    return "?" if expected is None else str(expected)
