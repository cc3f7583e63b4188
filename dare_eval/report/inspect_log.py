"""Item records in the log format of Inspect (inspect_ai, EvalLog version 2), so that its viewer shows our runs.

    dare-eval export inspect --run RUN --out FOLDER        then: inspect view start --log-dir FOLDER

Needs no package: the format is JSON. One file per model and data set. The decode spec stands in the model's arguments,
costs in each sample's metadata. Leaves out step maps and token ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dare_eval.records.atomic import write_atomic
from dare_eval.records.items import ItemRecord, sha256_text
from dare_eval.records.run_rows import run_rows
from dare_eval.records.runs import Run
from dare_eval.records.summary import ResultRow, is_scored

LOG_VERSION = 2
_UNKNOWN_TIME = "1970-01-01T00:00:00+00:00"
_STOPS = {"length": "max_tokens"}
_COSTS = ("nfe", "generated_tokens", "wall_s", "nfe_by_block", "stop", "repeat", "index")


def write_inspect_logs(run: Run, folder: Path) -> list[Path]:
    """Write one log per model and data set of ``run`` into ``folder`` and return the paths."""
    rows: dict[tuple[str, str], list[ResultRow]] = {}
    for found in run_rows(run):
        rows.setdefault((found.row.model, found.row.dataset), []).append(found.row)
    paths = []
    for model, dataset in run.results():
        log = inspect_log(run, model, dataset, rows.get((model, dataset), []))
        started = re.sub(r"[^0-9T]", "-", log["eval"]["created"][:19])
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{dataset}-{model}")
        path = folder / f"{started}_{name}_{log['eval']['task_id'][:12]}.json"
        write_atomic(path, json.dumps(_clean(log), indent=1, default=str) + "\n")
        paths.append(path)
    return paths


def inspect_log(run: Run, model: str, dataset: str, rows: Sequence[ResultRow]) -> dict[str, Any]:
    """Return the log of one model on one data set; ``rows`` are its metrics."""
    records = run.items(model, dataset).records
    settings = run.settings(model, dataset)
    scorer = str(settings.get("scorer") or "unknown")
    whole = all(row.complete for row in rows) and bool(rows)
    created = run.manifest.started if run.manifest and run.manifest.started else _UNKNOWN_TIME
    log: dict[str, Any] = {
        "version": LOG_VERSION,
        "status": "success" if whole else "error",
        "eval": _eval(run, model, dataset, records, created),
        "plan": {"name": "dare", "steps": [{"solver": "denoise", "params": settings.get("decode_spec") or {}}]},
        "results": _results(rows, scorer, records),
        "stats": {
            "started_at": created,
            "completed_at": (run.manifest.finished if run.manifest else None) or created,
            "model_usage": {model: _usage(records)},
        },
        "samples": [_sample(record, model, scorer.partition("@")[0]) for record in records],
    }
    if not whole:
        labels = [label for row in rows for label in row.labels] + list(run.problems)
        log["error"] = _error("; ".join(dict.fromkeys(labels)) or "results are incomplete")
    return log


def _eval(run: Run, model: str, dataset: str, records: Sequence[ItemRecord], created: str) -> dict[str, Any]:
    settings = run.settings(model, dataset)
    environment = run.manifest.environment if run.manifest else {}
    git = _object(environment.get("git"))
    found: dict[str, Any] = {
        "run_id": run.run_id,
        "eval_id": sha256_text(f"{run.run_id}/{model}/{dataset}"),
        "created": created,
        "task": dataset,
        "task_id": sha256_text(f"{run.run_id}/{model}/{dataset}"),
        "task_version": str(settings.get("prompt_hash") or 0),
        "dataset": {
            "name": str(settings.get("dataset") or dataset),
            "samples": len(records),
            "sample_ids": list(dict.fromkeys(record.question_id for record in records)),
            "shuffled": False,
        },
        "model": model,
        "model_args": settings.get("decode_spec") or {},
        "config": {"epochs": max((record.repeat for record in records), default=0) + 1},
        "packages": {str(key): str(value) for key, value in _object(environment.get("packages")).items()},
        "metadata": {key: value for key, value in settings.items() if key not in ("decode_spec", "packages", "git")},
    }
    if git.get("commit"):
        found["revision"] = {"type": "git", "origin": "", "commit": str(git["commit"]), "dirty": git.get("dirty")}
    return found


def _results(rows: Sequence[ResultRow], scorer: str, records: Sequence[ItemRecord]) -> dict[str, Any]:
    metrics = {
        row.metric: {
            "name": row.metric,
            "value": row.value / 100,
            "metadata": {"low": row.low, "high": row.high, "method": row.method, "n": row.n, "expected": row.expected},
        }
        for row in rows
        if row.value is not None
    }
    name = scorer.partition("@")[0]
    scores = [{"name": name, "scorer": scorer, "metrics": metrics}] if metrics else []
    done = sum(is_scored(record) for record in records)
    return {"total_samples": len(records), "completed_samples": done, "scores": scores}


def _sample(record: ItemRecord, model: str, scorer: str) -> dict[str, Any]:
    answer = {"role": "assistant", "content": record.response, "source": "generate", "model": model}
    stop = _STOPS.get(record.stop or "", "stop")
    found: dict[str, Any] = {
        "id": record.question_id,
        "epoch": record.repeat + 1,
        "input": record.prompt,
        "target": _text(record.reference),
        "messages": [{"role": "user", "content": record.prompt, "source": "input"}, answer],
        "output": {
            "model": model,
            "choices": [{"message": answer, "stop_reason": stop}],
            "completion": record.response,
            "usage": _usage([record]),
            "time": record.wall_s,
        },
        "metadata": {name: value for name in _COSTS if (value := getattr(record, name)) is not None},
        "model_usage": {model: _usage([record])},
        "total_time": record.wall_s,
        "working_time": record.wall_s,
    }
    if record.correct is not None:
        whole = record.value is None or record.value in (0.0, 1.0)
        verdict = ("C" if record.correct else "I") if whole else record.value
        why = record.rule + (f": {_text(record.detail)}" if record.detail else "")
        found["scores"] = {scorer: {"value": verdict, "answer": record.extracted, "explanation": why}}
    if record.error is not None:
        found["error"] = _error(record.error)
    return found


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _usage(records: Sequence[ItemRecord]) -> dict[str, int]:
    tokens = sum(record.generated_tokens or 0 for record in records)
    return {"input_tokens": 0, "output_tokens": tokens, "total_tokens": tokens}


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": message, "traceback_ansi": message}


def _clean(value: Any) -> Any:
    """Return ``value`` with lone surrogates escaped: the viewer's reader refuses a file that holds one."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(entry) for key, entry in value.items()}
    return [_clean(entry) for entry in value] if isinstance(value, list | tuple) else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
