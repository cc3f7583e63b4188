"""Which results may be printed bold: the best of a column, and only when it beats every other beyond the noise.

Paired tests on the same items, Holm over the column. A column with a result that cannot be compared (other prompt,
no item records, another item set) has no bold cell. Tests are kept in the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dare_eval.errors import DareError
from dare_eval.records.column_tests import REFUSED
from dare_eval.records.compare import ALPHA, compare_results
from dare_eval.records.runs import Run, load_run
from dare_eval.records.significance import PairedTest, holm, reverse
from dare_eval.records.store import Store
from dare_eval.records.tables import Result


class PairwiseTests:
    """Paired tests between stored results, computed once and kept in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = store.pair_values()
        self._folders = {evaluation.id: evaluation.folder for evaluation in store.evaluations(all_states=True)}
        self._runs: dict[int, Run] = {}

    def test(self, a: Result, b: Result) -> PairedTest | None:
        """Return the test of ``b`` minus ``a``; None when the two cannot be compared."""
        known = self._kept(a.id, b.id)
        if known is not None:
            return None if known.method.startswith(REFUSED) else known
        found = self._compute(a, b)
        if found is not None and not self._store.read_only:
            self._store.add_pair_test(a.id, b.id, found)
        return found

    def _kept(self, a: int, b: int) -> PairedTest | None:
        known = self._known.get((a, b))
        if known is None and (b, a) in self._known:
            return reverse(self._known[b, a])
        return known

    def _compute(self, a: Result, b: Result) -> PairedTest | None:
        if (a.dataset, a.metric) != (b.dataset, b.metric):
            return None
        try:
            run_a, run_b = self._run(a.evaluation_id), self._run(b.evaluation_id)
            rows, _ = compare_results(run_a, run_b, a.model, b.model, a.dataset)
        except DareError:  # folder gone or records unreadable: nothing to compare, and the listing says why
            return None
        return next((row.test for row in rows if row.metric == a.metric), None)

    def _run(self, evaluation: int) -> Run:
        if evaluation not in self._runs:
            self._runs[evaluation] = load_run(Path(self._folders[evaluation]))
        return self._runs[evaluation]


def significant_best(results: Sequence[Result], tests: PairwiseTests) -> set[int]:
    """Return the ids of results that are significantly better than every other of their data set and metric."""
    columns: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.value is not None:
            columns.setdefault((result.dataset, result.metric), []).append(result)
    return {best.id for column in columns.values() if (best := _best(column, tests)) is not None}


def _best(column: Sequence[Result], tests: PairwiseTests) -> Result | None:
    best = max(column, key=lambda result: result.value or 0.0)
    found = [tests.test(other, best) for other in column if other is not best and not _again(other, best)]
    p_values = [test.p for test in found if test is not None and test.delta > 0]
    if not found or len(p_values) < len(found):
        return None
    return best if max(holm(p_values)) < ALPHA else None


def _again(a: Result, b: Result) -> bool:
    """Whether two results are one checkpoint under one decode spec, measured twice: no rival of itself."""
    return a.weight_hash is not None and (a.weight_hash, a.spec_digest) == (b.weight_hash, b.spec_digest)
