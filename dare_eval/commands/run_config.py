"""The config behind ``dare-eval run``: read, completed with this runtime, changed by the options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError, DataError, UsageError

RUNTIME: dict[str, Any] = {
    "infer": {
        "partitioner": {"type": "dare_eval.runtime.partition.InferPartitioner"},
        "runner": {
            "type": "dare_eval.runtime.fork_runner.ForkRunner",
            "max_num_workers": 2,
            "task": {"type": "dare_eval.runtime.infer_task.DiffusionInferTask"},
        },
    },
    "eval": {
        "partitioner": {"type": "dare_eval.runtime.partition.EvalPartitioner"},
        "runner": {
            "type": "dare_eval.runtime.fork_runner.ForkRunner",
            "max_num_workers": 2,
            "task": {"type": "dare_eval.runtime.eval_task.DareEvalTask"},
        },
    },
    "summarizer": {"type": "dare_eval.runtime.summarizer.ReportSummarizer"},
}
"""What ``configs/eval/_base/runtime.py`` says, for configs that leave it out."""


def load_config(path: Path) -> Any:
    """Return the config in ``path`` as OpenCompass sees it; raises ``UsageError`` saying what is wrong with it."""
    import tempfile

    if not path.is_file():
        raise DataError("there is no such config", seen=path, remedy="ls configs/eval shows what the project has")
    from mmengine.config import Config

    try:
        cfg = Config.fromfile(str(path), format_python_code=False)
        with tempfile.TemporaryDirectory() as place:  # dumping turns imported names into dotted paths
            cfg.dump(f"{place}/config.py")
            return Config.fromfile(f"{place}/config.py", format_python_code=False)
    except DareError:
        raise
    except Exception as error:
        raise UsageError(
            f"the config cannot be read: {type(error).__name__}: {error}",
            seen=path,
            allowed="names, literals and lists; no function may be called, defined or left over in a config",
            remedy="build lists with literals or comprehensions; 'del' modules that were imported with 'import x'",
        ) from error


def prepare(
    cfg: Any, *, work_dir: Path | None, fresh: bool, limit: int | None, scorer: str | None, workers: int | None
) -> Path:
    """Apply the options to ``cfg`` and return the folder of the runs."""
    from dare_eval.runtime.limits import apply_limit, limit_of_environment

    limit_of_environment()  # a wrong one is refused here, before a run's folder exists
    for key, value in RUNTIME.items():
        cfg.setdefault(key, value)
    folder = work_dir or Path(cfg.get("work_dir") or "runs/default")
    cfg["work_dir"] = str(folder)
    if cfg["infer"]["partitioner"]["type"].startswith("dare_eval."):
        cfg["infer"]["partitioner"]["adopt"] = not fresh
        if workers:
            cfg["infer"]["partitioner"]["num_worker"] = workers
            cfg["infer"]["runner"]["max_num_workers"] = workers
    if scorer:
        from dare_eval.runtime.plan import check_scorer

        check_scorer(scorer)  # here, before hours of decoding
        cfg["eval"]["runner"]["task"]["scorer"] = scorer
    if limit:
        combined = [one for part in cfg.get("model_dataset_combinations") or () for one in part["datasets"]]
        apply_limit([*cfg.get("datasets", []), *combined], limit)
    return folder


def switches(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``switch=value`` texts of a scoring policy; raises ``UsageError`` for what is none."""
    from dare_eval.scoring.policy import as_policy
    from dare_eval.values import read_value

    found: dict[str, Any] = {}
    for name, sign, value in (text.partition("=") for text in texts):
        if not sign:
            raise UsageError("--scoring-policy takes switch=value", seen=name, allowed="such as percent=ratio")
        found[name] = read_value(name, value)
    as_policy(found)
    return found


def unfinished_run(folder: Path) -> str | None:
    """Return the name of the newest run in ``folder`` when it did not finish, else None."""
    from dare_eval.records.manifest import read_manifest
    from dare_eval.records.runs import TIMESTAMP

    runs = sorted(path for path in folder.glob("*") if TIMESTAMP.fullmatch(path.name)) if folder.is_dir() else []
    if not runs:
        return None
    try:
        return runs[-1].name if read_manifest(runs[-1]).status != "finished" else None
    except DataError:  # killed before the manifest was written: nothing in it is worth continuing
        return None
