"""Which benchmark an OpenCompass data set is, and which of our scorers reads its answers.

Keyed by the data set class, since upstream's abbrs and config names vary while its loaders do not. A data set that
is not listed is scored by its own evaluator only; one whose options are compared by likelihood, by the label chosen.
``scoring_policy`` in its ``eval_cfg`` switches how answers are read (``scoring.policy``) and is named in the metric.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dare_eval.evaluators import inputs
from dare_eval.evaluators.inputs import Inputs
from dare_eval.scoring.policy import as_policy, concerning, metric_under


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: its name in the preset table, our scorer, and the name of its metric."""

    name: str
    kind: str | None = None
    """Scorer of ``dare_eval.scoring``; None: upstream's evaluator alone."""
    metric: str = "accuracy"
    inputs: Callable[[Mapping[str, Any], Any], Inputs] = inputs.plain
    """Makes the scorer's reference and context from a row and upstream's reference."""
    whole: int | None = None
    """Number of items that upstream's evaluator insists on; on fewer it is not applicable."""


_BY_CLASS: dict[str, Benchmark] = {
    "GSM8KDataset": Benchmark("gsm8k", "gsm8k"),
    "MATHDataset": Benchmark("math", "math"),
    "Aime2024Dataset": Benchmark("aime2024", "math"),
    "Aime2025Dataset": Benchmark("aime2025", "math"),
    "OlympiadBenchDataset": Benchmark("olympiadbench", "math"),
    "MMLUDataset": Benchmark("mmlu", "choice", inputs=inputs.letters),
    "CEvalDataset": Benchmark("ceval", "choice", inputs=inputs.letters),
    "CMMLUDataset": Benchmark("cmmlu", "choice", inputs=inputs.letters),
    "GPQADataset": Benchmark("gpqa", "choice", inputs=inputs.letters),
    "ARCDataset": Benchmark("arc_c", "choice"),
    "MMLUProDataset": Benchmark("mmlu_pro", "choice", inputs=inputs.mmlu_pro),
    "BBHDataset": Benchmark("bbh"),
    "IFEvalDataset": Benchmark("ifeval", "instruction", "strict"),
    "HumanevalDataset": Benchmark("humaneval", "code", "pass@1", inputs.humaneval, whole=164),
    "HumanEvalPlusDataset": Benchmark("humaneval_plus", "code", "pass@1", inputs.humaneval),
    "LCBCodeGenerationDataset": Benchmark("livecodebench", "code", "pass@1", inputs.livecodebench),
    "MBPPDataset": Benchmark("mbpp", "code", "pass@1", inputs.mbpp),
    "SanitizedMBPPDataset": Benchmark("sanitized_mbpp", "code", "pass@1", inputs.mbpp),
    "SudokuDataset": Benchmark("sudoku", "sudoku", "exact"),
    "CountdownDataset": Benchmark("countdown", "countdown", "exact"),
    "ListOpsDataset": Benchmark("list_ops", "list_ops", "exact"),
}
_BY_PREFIX = {
    "hellaswag": Benchmark("hellaswag", "choice", inputs=inputs.letters),
    "winogrande": Benchmark("winogrande", "choice", inputs=inputs.winogrande),
    "gpqa": Benchmark("gpqa", "choice", inputs=inputs.letters),
    "lcb": Benchmark("livecodebench"),
}
_BY_PATH = {"aime2024": Benchmark("aime2024", "math"), "aime2025": Benchmark("aime2025", "math")}
"""Data sets that upstream reads with a class for any file."""
POLICY_KEY = "scoring_policy"
_LIKELIHOOD = ("PPLInferencer", "LLInferencer")


def benchmark_of(dataset_cfg: Mapping[str, Any]) -> Benchmark | None:
    """Return the benchmark of a data set config, or None when it is not known."""
    found = _by_class(_class_name(dataset_cfg.get("type", "")), dataset_cfg)
    if found is not None and is_likelihood(dataset_cfg):
        return replace(found, kind="label", metric="accuracy", inputs=inputs.plain, whole=None)
    return None if found is None else _under(found, policy_of(dataset_cfg))


def policy_of(dataset_cfg: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scoring policy that a data set config, or the evaluator in it, asks for; empty for the defaults."""
    eval_cfg = dataset_cfg.get("eval_cfg") or {}
    return dict(eval_cfg.get(POLICY_KEY) or (eval_cfg.get("evaluator") or {}).get(POLICY_KEY) or {})


def with_policy(dataset_cfg: Any, policy: Mapping[str, Any]) -> Any:
    """Return a copy of a data set config that is read under ``policy``; what it says itself wins.

    Raises ``UsageError`` for an unknown switch or value.
    """
    as_policy(dict(policy))
    changed = copy.deepcopy(dataset_cfg)
    changed["eval_cfg"] = {**(changed.get("eval_cfg") or {}), POLICY_KEY: {**policy, **policy_of(dataset_cfg)}}
    return changed


def _under(benchmark: Benchmark, policy: dict[str, Any]) -> Benchmark:
    """Return the benchmark read under ``policy``: its own, where no switch that its scorer reads is changed."""
    changed = concerning(benchmark.kind, policy)
    if not changed:
        return benchmark
    made = partial(inputs.under_policy, benchmark.inputs, changed)
    return replace(benchmark, metric=metric_under(benchmark.metric, changed), inputs=made)


def inferencer_name(dataset_cfg: Mapping[str, Any]) -> str:
    """Return the class name of the inferencer a data set config names; empty when it names none."""
    return _class_name(dataset_cfg.get("infer_cfg", {}).get("inferencer", {}).get("type", ""))


def is_likelihood(dataset_cfg: Mapping[str, Any]) -> bool:
    """Whether the options of a data set are compared by likelihood instead of generated."""
    return inferencer_name(dataset_cfg).removeprefix("Diffusion") in _LIKELIHOOD


def _by_class(name: str, dataset_cfg: Mapping[str, Any]) -> Benchmark | None:
    if name in ("MATHDataset", "CustomDataset") and "prm800k_500" in str(dataset_cfg.get("file_name", "")):
        return Benchmark("math500", "math")
    if name == "CustomDataset":
        return _BY_PATH.get(str(dataset_cfg.get("path", "")).rpartition("/")[2])
    if name == "HumanevalDataset" and _evaluator_name(dataset_cfg) == "HumanEvalPlusEvaluator":
        return Benchmark("humaneval_plus", metric="pass@1")
    if name in _BY_CLASS:
        return _BY_CLASS[name]
    return next((found for key, found in _BY_PREFIX.items() if name.lower().startswith(key)), None)


def _evaluator_name(dataset_cfg: Mapping[str, Any]) -> str:
    return _class_name(dataset_cfg.get("eval_cfg", {}).get("evaluator", {}).get("type", ""))


def _class_name(kind: Any) -> str:
    return kind.rpartition(".")[2] if isinstance(kind, str) else str(kind.__name__)
