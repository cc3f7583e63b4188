"""Paired tests between all results of a column (one data set and metric), made once and kept in the store.

Gives what ``records.compare`` gives pair by pair, in a form that serves 200 runs: verdicts are compared as columns of
numbers, and graded credit shares one set of bootstrap draws per item set. A pair that may not be compared is kept too,
with the reason, so that nobody asks again. Made by ``dare-eval board`` before it opens.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dare_eval.errors import DareError
from dare_eval.records.comparable import IDENTITY, compare_settings
from dare_eval.records.intervals import Floats, bootstrap_columns
from dare_eval.records.manifest import RunManifest
from dare_eval.records.runs import GRADED
from dare_eval.records.significance import PairedTest, paired_binary, paired_bootstrap, resampled_test
from dare_eval.records.store import Store
from dare_eval.records.tables import Evaluation, Result
from dare_eval.records.vectors import Vectors, read_vectors

REFUSED = "refused: "
"""Start of ``method`` for a pair that may not be compared; the reason follows."""
_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Scored:
    """One result of a column with its items."""

    id: int
    settings: Mapping[str, Any]
    graded: bool
    items: Vectors


Pair = tuple[int, int, PairedTest]
"""Ids of both results, the smaller first, and the test of the second minus the first."""


def prepare_pairs(store: Store, notify: Callable[[str], None] | None = None) -> int:
    """Make every paired test that the newest results lack and return how many were made."""
    evaluations = {evaluation.id: evaluation for evaluation in store.evaluations()}
    columns: dict[tuple[str, str], list[Result]] = {}
    for result in store.results():
        if result.value is not None and verdict_or_credit(result, evaluations[result.evaluation_id]) is not None:
            columns.setdefault((result.dataset, result.metric), []).append(result)
    known = store.pair_keys()
    made = 0
    for (dataset, metric), column in columns.items():
        if all((a.id, b.id) in known for i, a in enumerate(column) for b in column[i + 1 :]):
            continue
        if notify is not None:
            notify(f"comparing {len(column)} results on {dataset}, {metric}")
        pairs = list(column_tests(read_column(column, evaluations), known))
        store.add_pair_tests(pairs)
        made += len(pairs)
    return made


def verdict_or_credit(result: Result, evaluation: Evaluation) -> str | None:
    """Tell what a result's metric averages over items: ``verdict``, ``credit``, or None for anything else."""
    if result.metric == str(result.settings.get("metric") or "accuracy"):
        return "verdict"
    name = None
    if evaluation.manifest:
        entry = RunManifest.from_dict(evaluation.manifest).dataset(result.dataset)
        name = entry.graded_metric if entry else None
    return "credit" if result.metric == (name or GRADED) else None


def read_column(column: Sequence[Result], evaluations: Mapping[int, Evaluation]) -> list[Scored]:
    """Return the results of ``column`` whose items can be read, ordered by id."""
    found = []
    for result in sorted(column, key=lambda one: one.id):
        place = evaluations[result.evaluation_id]
        try:
            items = read_vectors(Path(place.folder), place.stamp, result.model, result.dataset)
        except (DareError, OSError):  # folder gone or unreadable: the board's list of problems says so
            continue
        if len(items):
            found.append(Scored(result.id, result.settings, verdict_or_credit(result, place) == "credit", items))
    return found


def column_tests(column: Sequence[Scored], known: frozenset[tuple[int, int]] = frozenset()) -> Iterator[Pair]:
    """Yield the test of every pair of ``column`` that is not in ``known``."""
    draws = _Draws(column)
    refusal = _Refusals()
    for i, a in enumerate(column):
        for b in column[i + 1 :]:
            if (a.id, b.id) in known:
                continue
            reason = refusal(a, b)
            yield a.id, b.id, _refused(reason) if reason else draws.test(a, b)


class _Draws:
    """Tests two results; bootstrap means of results that answered the same items come from the same draws."""

    def __init__(self, column: Sequence[Scored]) -> None:
        self._members: dict[bytes, list[Scored]] = {}
        self._set = {one.id: one.items["item"].tobytes() + one.items["question"].tobytes() for one in column}
        for one in column:
            self._members.setdefault(self._set[one.id], []).append(one)
        self._means: dict[bytes, dict[int, Floats]] = {}

    def test(self, a: Scored, b: Scored) -> PairedTest:
        left, right = common_items(a.items, b.items)
        if not len(left):
            return _refused("items differ: none is scored in both runs")
        other = (left["prompt"] != right["prompt"]) & (left["prompt"] != 0) & (right["prompt"] != 0)
        if other.any() and a.settings.get("family") == b.settings.get("family"):
            return _refused(f"prompt as the model received it differs on {int(other.sum())} of {len(left)} items")
        repeated = len(np.unique(left["question"])) < len(left)
        field = "credit" if a.graded else "correct"
        if not a.graded and not repeated:
            return paired_binary(left[field].tolist(), right[field].tolist())
        if self._set[a.id] == self._set[b.id]:
            means = self._shared(self._set[a.id], field, repeated)
            return resampled_test(_values(right, field) - _values(left, field), means[b.id] - means[a.id])
        questions = left["question"].tolist() if repeated else None
        return paired_bootstrap(_values(left, field), _values(right, field), clusters=questions)

    def _shared(self, key: bytes, field: str, repeated: bool) -> dict[int, Floats]:
        if key not in self._means:
            members = self._members[key]
            values_NK = np.stack([_values(one.items, field) for one in members], axis=1)
            clusters = members[0].items["question"].tolist() if repeated else None
            means_KR = bootstrap_columns(values_NK, clusters=clusters, resamples=_RESAMPLES).T.copy()
            self._means[key] = {one.id: means for one, means in zip(members, means_KR, strict=True)}
        return self._means[key]


class _Refusals:
    """Why two results may not be compared; settings that many runs share are compared once."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._reason = functools.cache(_reason)

    def __call__(self, a: Scored, b: Scored) -> str | None:
        hashes = a.settings.get("weight_hash"), b.settings.get("weight_hash")
        return self._reason(self._text(a), self._text(b), hashes[0] is not None and hashes[0] == hashes[1])

    def _text(self, one: Scored) -> str:
        if one.id not in self._texts:
            kept = {key: value for key, value in one.settings.items() if key not in IDENTITY}
            self._texts[one.id] = json.dumps(kept, sort_keys=True, default=str)
        return self._texts[one.id]


def _reason(a: str, b: str, same_weights: bool) -> str | None:
    weights = {"weight_hash": "equal"} if same_weights else {}
    found = compare_settings({**json.loads(a), **weights}, {**json.loads(b), **weights})
    reasons = [one.reason for one in found.refused() if one.name != "content_hash"]  # the items themselves decide
    return "; ".join(reasons) or None


def common_items(a: Vectors, b: Vectors) -> tuple[Vectors, Vectors]:
    """Return the rows of the items that both hold, in the order of ``a``."""
    if len(a) == len(b) and bool((a["item"] == b["item"]).all()):
        return a, b
    _, left, right = np.intersect1d(a["item"], b["item"], assume_unique=True, return_indices=True)
    order = np.argsort(left)
    return a[left[order]], b[right[order]]


def _values(items: Vectors, field: str) -> Floats:
    return np.asarray(items[field], dtype=np.float64)


def _refused(reason: str) -> PairedTest:
    return PairedTest(0.0, -1.0, 1.0, 1.0, 0, 0, 0, REFUSED + reason)
