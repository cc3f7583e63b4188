"""``ScoreEvaluator``: an OpenCompass evaluator that is one call of ``dare_eval.scoring.score`` per item.

Works under upstream's evaluation task too; under ours the scores also become item records.

    eval_cfg = dict(evaluator=dict(type=ScoreEvaluator, kind="sudoku"))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opencompass.openicl.icl_evaluator import BaseEvaluator

from dare_eval.errors import unknown
from dare_eval.evaluators.inputs import Inputs
from dare_eval.evaluators.planning import extra_scores, planning_values
from dare_eval.evaluators.scores import score_all
from dare_eval.scoring import Score
from dare_eval.scoring.base import SCORERS
from dare_eval.scoring.policy import concerning, metric_under

METRIC = "exact"
"""Name of the share of right answers where a config gives none."""


class ScoreEvaluator(BaseEvaluator):
    """Scores by ``kind``; ``metric`` names the share of correct items, ``context`` goes to the scorer as it is.

    ``scoring_policy`` are switches of ``scoring.policy``; those that the kind reads are named in the metric.
    ``columns`` are columns of the row that go to the scorer beside it (an entry point, the prompt). ``presets`` adds
    the score under other published rules to each item (Sudoku: ``d1_pad``). Raises ``UsageError`` for an unknown kind.
    """

    def __init__(
        self,
        kind: str,
        metric: str = METRIC,
        context: Mapping[str, Any] | None = None,
        presets: Sequence[str] = (),
        columns: Sequence[str] = (),
        scoring_policy: Mapping[str, Any] | None = None,
        pred_postprocessor: Any = None,
    ) -> None:
        super().__init__(pred_postprocessor)
        if kind not in SCORERS:
            raise unknown("scorer", kind, SCORERS.names())
        changed = concerning(kind, dict(scoring_policy or {}))
        self.kind, self.metric = kind, metric_under(metric, changed)
        self.context = {**(context or {}), **({"policy": changed} if changed else {})}
        self.presets, self.columns = tuple(presets), tuple(columns)

    def score_items(
        self, responses: Sequence[str], references: Sequence[Any], rows: Iterable[Mapping[str, Any]] | None = None
    ) -> list[Score]:
        """Return one score per item, the scores under ``presets`` in its detail; ``columns`` are read from ``rows``."""
        beside = [{name: row[name] for name in self.columns} for row in rows or ()] or [{}] * len(references)
        made = [Inputs(ref, {**self.context, **own}) for ref, own in zip(references, beside, strict=True)]
        scores = score_all(self.kind, responses, made)
        return [
            extra_scores(self.kind, one, response, reference, self.presets)
            for one, response, reference in zip(scores, responses, references, strict=True)
        ]

    def score(self, predictions: Sequence[str], references: Sequence[Any], test_set: Any = None) -> dict[str, Any]:
        """Return the metrics in percent and one detail per item, as OpenCompass expects them."""
        return self.result(self.score_items(predictions, references, test_set), references)

    def result(self, scores: Sequence[Score], references: Sequence[Any]) -> dict[str, Any]:
        """Return what :meth:`score` returns, from scores already made."""
        found = {self.metric: 100.0 * sum(one.correct for one in scores) / len(scores)} if scores else {}
        for name, values in planning_values(self.kind, scores).items():
            found[name] = 100.0 * sum(values) / len(values)
        details = [
            {"pred": one.extracted, "answer": reference, "correct": one.correct, "rule": one.rule, "value": one.value}
            for one, reference in zip(scores, references, strict=True)
        ]
        return {**found, "details": details}
