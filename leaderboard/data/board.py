"""Everything the board shows about results, read once per state of the store and never changed.

:func:`load_board` reads the newest state of every run; pages filter and page through the :class:`Cell` objects it
gives. Item records are read later and only where a page shows them (``data.items``).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dare_eval.records.column_tests import REFUSED as REFUSED_TEST
from dare_eval.records.column_tests import verdict_or_credit
from dare_eval.records.noise import Floor, floors_of
from dare_eval.records.significance import PairedTest, reverse
from dare_eval.records.store import Store
from dare_eval.records.tables import Checkpoint, Evaluation, Result
from dare_eval.report.ties import REFUSED, P
from dare_eval.spec.tables import FAMILIES, POLICIES
from leaderboard.data.problems import Problem, problems_of

UNREADABLE = "?"
"""Data set of the row that stands for a report nobody can read."""
DIFFUSION, AUTOREGRESSIVE, UNKNOWN = "diffusion", "autoregressive", "not recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One model of one run on one data set in one metric."""

    id: int
    evaluation: int
    run: str
    folder: str
    stamp: str
    status: str
    started: str
    model: str
    """Name in the run's folders."""
    name: str
    """Name of the checkpoint with these weights, where it is registered, else the model's."""
    family: str
    kind: str
    """``diffusion``, ``autoregressive`` or ``not recorded``."""
    dataset: str
    base: str
    """Data set without its template."""
    template: str | None
    metric: str
    measures: str | None
    """``verdict``, ``credit`` or None for metrics without item records."""
    value: float | None
    low: float | None
    high: float | None
    n: int
    expected: int | None
    nfe: float | None
    tpf: float | None
    tps: float | None
    settings: Mapping[str, Any]
    """What makes this result a particular measurement (``records.comparable``)."""
    spec: Mapping[str, Any]
    spec_digest: str | None
    weight_hash: str | None
    labels: tuple[str, ...]
    complete: bool

    @property
    def policy(self) -> str:
        """Return the decoding policy, or what stands in for it."""
        return str(self.spec.get("policy") or ("-" if self.kind == AUTOREGRESSIVE else "not recorded"))

    @property
    def column(self) -> tuple[str, str]:
        """Return data set and metric."""
        return self.dataset, self.metric


@dataclass(frozen=True, slots=True, eq=False)  # states are told apart by identity, so caches may hold them
class Board:
    """One state of the store."""

    cells: tuple[Cell, ...]
    runs: Mapping[int, Evaluation]
    checkpoints: tuple[Checkpoint, ...]
    tests: Mapping[tuple[int, int], PairedTest]
    problems: tuple[Problem, ...]
    floors: tuple[Floor, ...]
    """Noise floors, newest last."""
    by_id: Mapping[int, Cell] = field(repr=False)

    @property
    def empty(self) -> bool:
        """True when no run is known."""
        return not self.runs

    def test(self, a: int, b: int) -> PairedTest | None:
        """Return the kept paired test of result ``b`` minus result ``a``, refused ones included."""
        if (a, b) in self.tests:
            return self.tests[a, b]
        return reverse(self.tests[b, a]) if (b, a) in self.tests else None

    def floor(self, dataset: str, weights: Collection[str | None]) -> float | None:
        """Return the noise floor (percent of items) under differences of ``weights`` on ``dataset``.

        As in ``records.noise``: measured on one of the models compared, else the largest on that benchmark.
        """
        known = [one for one in self.floors if one.dataset == dataset]
        own = [one for one in known if one.weight_hash is not None and one.weight_hash in weights]
        return max((one.flip_rate for one in own or known), default=None)

    def p(self, a: int, b: int) -> P:
        """Return p of that test as :mod:`dare_eval.report.ties` reads it."""
        found = self.tests.get((a, b)) or self.tests.get((b, a))
        if found is None:
            return None
        return REFUSED if found.method.startswith(REFUSED_TEST) else found.p


@functools.lru_cache(maxsize=2)
def load_board(url: str, version: tuple[int, ...], folder_problems: tuple[Problem, ...] = ()) -> Board:
    """Return the board of the store at ``url`` in the state ``version`` (``Store.version()``)."""
    del version  # only tells states apart
    store = Store(url)
    runs = {evaluation.id: evaluation for evaluation in store.evaluations()}
    results = store.results()
    checkpoints = tuple(store.checkpoints())
    names = {one.weight_hash: one.name for one in checkpoints}
    shown = [result for result in results if result.dataset != UNREADABLE]  # the list of problems has it
    cells = tuple(_cell(result, runs[result.evaluation_id], names) for result in shown)
    return Board(
        cells=cells,
        runs=runs,
        checkpoints=checkpoints,
        tests=store.pair_values(),
        problems=(*folder_problems, *problems_of(list(runs.values()), results)),
        floors=tuple(floors_of(store.engine)),
        by_id={cell.id: cell for cell in cells},
    )


def kind_of(family: str, spec: Mapping[str, Any]) -> str:
    """Tell how a model writes: a known diffusion family or policy, any other named family, or nobody knows."""
    if family in FAMILIES.names() or spec.get("policy") in POLICIES.names() or spec.get("block_length"):
        return DIFFUSION
    return AUTOREGRESSIVE if family else UNKNOWN


def columns_of(cells: Sequence[Cell], *, all_metrics: bool = False) -> list[tuple[str, str]]:
    """Return the (data set, metric) columns in reading order; by default one metric per data set.

    The first metric of a data set is its share of right answers where it has one.
    """
    metrics: dict[str, dict[str, bool]] = {}
    for cell in cells:
        metrics.setdefault(cell.dataset, {}).setdefault(cell.metric, cell.measures == "verdict")
    columns = []
    for dataset in sorted(metrics):
        names = sorted(metrics[dataset], key=lambda name: (not metrics[dataset][name], name))
        columns += [(dataset, name) for name in (names if all_metrics else names[:1])]
    return columns


def _cell(result: Result, run: Evaluation, names: Mapping[str, str]) -> Cell:
    spec = result.row.get("decode_spec") or {}
    family = str(result.settings.get("family") or spec.get("family") or "")
    return Cell(
        **{name: getattr(result, name) for name in ("id", "model", "dataset", "metric", "spec_digest", "weight_hash")},
        **{name: getattr(result, name) for name in ("value", "low", "high", "n", "expected", "nfe", "tpf", "tps")},
        evaluation=run.id,
        name=names.get(result.weight_hash or "", result.model),
        run=run.run_id,
        folder=run.folder,
        stamp=run.stamp,
        status=run.status,
        started=run.started or "",
        family=family or "family not recorded",
        kind=kind_of(family, spec),
        base=str(result.settings.get("dataset") or result.dataset),
        template=result.settings.get("task_template"),
        measures=verdict_or_credit(result, run),
        settings=result.settings,
        spec=spec,
        labels=tuple(result.labels),
        complete=result.value is not None and result.expected in (None, result.n),
    )
