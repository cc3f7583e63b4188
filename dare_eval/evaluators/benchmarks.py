"""Which benchmark an OpenCompass data set is, and which of our scorers reads its answers.

Keyed by the data set class, since upstream's abbrs and config names vary while its loaders do not. A data set that
is not listed is scored by its own evaluator only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dare_eval.evaluators import inputs
from dare_eval.evaluators.inputs import Inputs


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
    "MMLUProDataset": Benchmark("mmlu_pro"),
    "BBHDataset": Benchmark("bbh"),
    "IFEvalDataset": Benchmark("ifeval"),
    "HumanevalDataset": Benchmark("humaneval", "code", "pass@1", inputs.humaneval, whole=164),
    "MBPPDataset": Benchmark("mbpp", "code", "pass@1", inputs.mbpp),
    "SanitizedMBPPDataset": Benchmark("sanitized_mbpp", "code", "pass@1", inputs.mbpp),
    "SudokuDataset": Benchmark("sudoku", "sudoku", "exact"),
    "CountdownDataset": Benchmark("countdown", "countdown", "exact"),
}
_BY_PREFIX = {"hellaswag": "hellaswag", "winogrande": "winogrande", "gpqa": "gpqa", "lcb": "livecodebench"}


def benchmark_of(dataset_cfg: Mapping[str, Any]) -> Benchmark | None:
    """Return the benchmark of a data set config, or None when it is not known."""
    kind = dataset_cfg.get("type", "")
    name = kind.rpartition(".")[2] if isinstance(kind, str) else kind.__name__
    if name == "MATHDataset" and "500" in str(dataset_cfg.get("file_name", "")):
        return Benchmark("math500", "math")
    found = _BY_CLASS.get(name)
    if found is None:
        found = next((Benchmark(value) for key, value in _BY_PREFIX.items() if name.lower().startswith(key)), None)
    return found
