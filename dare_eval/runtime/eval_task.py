"""``DareEvalTask``: scores predictions with our scorer, upstream's evaluator, or both, and writes item records.

``scorer`` (in ``eval.runner.task``) is ``both`` by default: upstream's result file stays upstream's, and our
verdict, its own beside it, goes into one record per item. Items that a replayed model has no answer for are removed
before either scorer. An evaluator that raises is a recorded failure; our own scores survive it.

    python -m dare_eval.runtime.eval_task PARAMS.py      (what a runner calls for evaluators with a GPU)
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opencompass.registry import ICL_EVALUATORS, TEXT_POSTPROCESSORS
from opencompass.tasks import OpenICLEvalTask
from opencompass.utils import get_logger

from dare_eval.errors import DareError, DataError, IncompleteError
from dare_eval.evaluators.benchmarks import Benchmark, benchmark_of, policy_of
from dare_eval.evaluators.score import ScoreEvaluator
from dare_eval.evaluators.scores import score_all
from dare_eval.inferencers.item_store import load_items
from dare_eval.records.item_files import write_items
from dare_eval.records.items import ItemRecord
from dare_eval.runtime.built import build
from dare_eval.runtime.data_paths import share_data_root
from dare_eval.runtime.dotted import resolve
from dare_eval.runtime.failures import failure_from, failure_of, record_failure
from dare_eval.runtime.plan import Pair, check_scorer, plan_pair, score_settings
from dare_eval.runtime.predictions import load_all
from dare_eval.runtime.sidecars import write_sidecar
from dare_eval.runtime.upstream_score import Upstream, number_of, verdicts
from dare_eval.scoring import Score


@dataclass(frozen=True, slots=True)
class _Items:
    """The items of one pair that have an answer."""

    kept: list[int]
    """Positions in the whole data set."""
    entries: list[dict[str, Any]]
    test: Any
    references: list[Any]

    @property
    def predictions(self) -> list[Any]:
        """Predictions as upstream's evaluators expect them: texts, labels, or one list of texts per conversation."""
        return [entry["prediction"] for entry in self.entries]

    @property
    def responses(self) -> list[str]:
        """Predictions as texts."""
        return [str(entry["prediction"]) for entry in self.entries]


class DareEvalTask(OpenICLEvalTask):
    """Scores the data sets of one model; ends with exit code 1 when one of them failed."""

    name_prefix = "DareEval"

    def get_command(self, cfg_path: str, template: str) -> str:
        """Return the command of this task in an interpreter of its own."""
        return template.format(task_cmd=f"{sys.executable} -m dare_eval.runtime.eval_task {cfg_path}")

    def run(self) -> None:
        """Score every data set of the task; raises ``SystemExit(1)`` after the last when one failed."""
        share_data_root()
        task_cfg = self.cfg.get("eval", {}).get("runner", {}).get("task", {})
        self.scorer = check_scorer(task_cfg.get("scorer", "both"))
        failed = 0
        for model_cfg, dataset_cfgs in zip(self.model_cfgs, self.dataset_cfgs, strict=True):
            for dataset_cfg in dataset_cfgs:
                self.model_cfg, self.dataset_cfg = model_cfg, dataset_cfg
                failed += not self._run_one()
        if failed:
            raise SystemExit(1)

    def _run_one(self) -> bool:
        pair = plan_pair(self.model_cfg, self.dataset_cfg)
        if failure_of(self.work_dir, pair.model, pair.dataset) is not None:
            return False
        try:
            self._score_pair(pair)
        except Exception as error:
            self._note(pair, error)
            return False
        return failure_of(self.work_dir, pair.model, pair.dataset) is None

    def _score_pair(self, pair: Pair) -> None:
        self.eval_cfg = copy.deepcopy(self.dataset_cfg.get("eval_cfg") or {})
        self.output_column = self.dataset_cfg["reader_cfg"].get("output_column")
        entries = load_all(pair.target(Path(self.work_dir) / "predictions"), len(pair.rows))
        items = self._items(entries)
        if not items.kept:
            raise DataError(
                "no item of the data set has a recording",
                seen=f"{len(entries)} items, 0 recorded",
                remedy="check the recordings file and the ids or questions it is matched by",
            )
        evaluator = resolve("evaluator", self.eval_cfg["evaluator"]["type"], ICL_EVALUATORS)
        benchmark = benchmark_of(self.dataset_cfg) or Benchmark(pair.dataset)
        if isinstance(evaluator, type) and issubclass(evaluator, ScoreEvaluator):
            self._score_ours(pair, items, evaluator)
        else:
            self._score_both(pair, items, benchmark, evaluator.__name__)

    def _items(self, entries: list[dict[str, Any]]) -> _Items:
        kept = [i for i, entry in enumerate(entries) if not entry.get("decode", {}).get("unrecorded")]
        test = build(self.dataset_cfg).test
        if len(kept) < len(entries):
            test = test.select(kept)
        if "dataset_postprocessor" in self.eval_cfg:
            settings = copy.deepcopy(self.eval_cfg["dataset_postprocessor"])
            clean = resolve("postprocessor", settings.pop("type"), TEXT_POSTPROCESSORS)
            column = self.output_column
            test = test.map(lambda row: {column: clean(row[column], **settings)}, load_from_cache_file=False)
        references = list(test[self.output_column]) if self.output_column else [None] * len(kept)
        return _Items(kept, [entries[i] for i in kept], test, references)

    def _score_ours(self, pair: Pair, items: _Items, evaluator: type[ScoreEvaluator]) -> None:
        settings = {key: value for key, value in self.eval_cfg["evaluator"].items() if key != "type"}
        if (policy := policy_of(self.dataset_cfg)) and "scoring_policy" not in settings:
            settings["scoring_policy"] = policy
        judge = evaluator(**settings)
        scores = judge.score_items(items.responses, items.references, items.test)
        self._write_records(pair, items, scores)
        notes = {"kind": judge.kind, "metric": judge.metric, "upstream": Upstream("not run").to_dict()}
        self._write_result(pair, judge.result(scores, items.references), notes)

    def _score_both(self, pair: Pair, items: _Items, benchmark: Benchmark, evaluator: str) -> None:
        """Score with ours first, so that its records survive an upstream evaluator that raises."""
        ours = self._our_scores(items, benchmark) if self.scorer != "upstream" else None
        if ours is not None:
            self._write_records(pair, items, ours)
        upstream, result = Upstream("not run"), dict[str, Any]()
        stock: list[Any] | None = None
        if self.scorer != "dare" or ours is None:
            upstream, result, extracted = self._upstream(items, benchmark, needed=ours is None)
            stock = verdicts(result, extracted, items.references, evaluator) if upstream.status == "ok" else None
            self._write_records(pair, items, ours, stock)
        if ours is not None and upstream.status != "ok":
            result = _our_result(ours, benchmark.metric)
        notes = {"kind": benchmark.kind if ours else None, "metric": benchmark.metric, "upstream": upstream.to_dict()}
        self._write_result(pair, result, notes)

    def _our_scores(self, items: _Items, benchmark: Benchmark) -> list[Score] | None:
        if benchmark.kind is None:
            return None
        made = [benchmark.inputs(row, reference) for row, reference in zip(items.test, items.references, strict=True)]
        return score_all(benchmark.kind, items.responses, made)

    def _upstream(
        self, items: _Items, benchmark: Benchmark, *, needed: bool
    ) -> tuple[Upstream, dict[str, Any], list[Any]]:
        """Return upstream's number, its result and the answers it extracted; raises when its evaluator fails.

        One that asks for a package that is not here (evalplus, another antlr) is no failure unless it is ``needed``.
        """
        if benchmark.whole is not None and len(items.kept) != benchmark.whole:
            return Upstream("n/a (subset)"), {}, []
        extracted = self._process_predictions(items.predictions)
        try:
            result: dict[str, Any] = self._evaluate_predictions(extracted, items.test, items.entries)
        except ImportError as error:
            if needed:
                raise
            get_logger().warning(f"{benchmark.name}: the stock evaluator lacks a package: {error}")
            return Upstream("n/a (package)"), {}, []
        if "error" in result:
            raise IncompleteError("the stock evaluator reports an error", seen=result["error"])
        return number_of(result), result, extracted

    def _write_records(
        self, pair: Pair, items: _Items, scores: Sequence[Score] | None, stock: Sequence[Any] | None = None
    ) -> None:
        """Write one record per item of the whole data set, unrecorded ones included."""
        folder = Path(self.work_dir) / "predictions" / pair.model
        decoded = {record.item_id: record for record in load_items(folder, pair.dataset, pair.fingerprint)}
        records = [decoded.get(row.item_id) or _bare(row) for row in pair.rows]
        for place, position in enumerate(items.kept):
            record = replace(records[position], response=items.responses[place], reference=items.references[place])
            if stock is not None:
                verdict = stock[place]
                record = replace(record, upstream_correct=verdict.correct, upstream_extracted=verdict.extracted)
            if scores is not None:
                record = record.with_score(scores[place])
            elif stock is not None:  # no scorer of ours for this data set: upstream's verdict is the verdict
                record = replace(record, correct=verdict.correct, extracted=verdict.extracted, rule="upstream")
            records[position] = record
        unrecorded = set(range(len(records))) - set(items.kept)
        records = [replace(one, unrecorded=True) if i in unrecorded else one for i, one in enumerate(records)]
        write_items(Path(self.work_dir) / "records" / pair.model / f"{pair.dataset}.jsonl", records)

    def _write_result(self, pair: Pair, result: dict[str, Any], notes: dict[str, Any]) -> None:
        self._save_results(result)
        settings = score_settings(pair, self.model_cfg, self.dataset_cfg, self.scorer)
        target = pair.target(Path(self.work_dir) / "results")
        ks = self.dataset_cfg.get("k", 1)
        write_sidecar(target, settings, {**notes, "ks": [ks] if isinstance(ks, int) else list(ks)})

    def _note(self, pair: Pair, error: Exception) -> None:
        log = self.get_log_path("out")
        failure = failure_from(error, model=pair.model, dataset=pair.dataset, stage="score", log=log)
        record_failure(self.work_dir, failure)
        get_logger().error(f"{pair.label}: {error if isinstance(error, DareError) else failure.trace}")


def _bare(row: Any) -> ItemRecord:
    return ItemRecord(item_id=row.item_id, question_id=row.question_id, index=row.index, repeat=row.repeat)


def _our_result(scores: Sequence[Score], metric: str) -> dict[str, Any]:
    details = [{"pred": one.extracted, "correct": one.correct, "rule": one.rule} for one in scores]
    return {metric: 100.0 * sum(one.correct for one in scores) / len(scores), "details": details}


def main() -> None:
    """Run the task in the params file named on the command line."""
    from mmengine.config import Config

    DareEvalTask(Config.fromfile(sys.argv[1])).run()


if __name__ == "__main__":
    main()
