"""What a plain OpenCompass run recorded about its settings: the dumped config and the summary table.

The dumped config is Python; it is read as literals (``ast``) and never executed.
"""

from __future__ import annotations

import ast
import contextlib
import csv
from pathlib import Path
from typing import Any


def foreign_settings(folder: Path, model: str, dataset: str) -> dict[str, Any]:
    """Return prompt hash, evaluator, response length and model path as far as the run's own files tell them."""
    models, datasets = _entries(folder, "models"), _entries(folder, "datasets")
    maker, data = models.get(model, {}), datasets.get(dataset, {})
    scorer = data.get("eval_cfg", {}).get("evaluator", {}) if isinstance(data.get("eval_cfg"), dict) else {}
    length = _inferencer(data).get("max_out_len", maker.get("max_out_len"))
    found: dict[str, tuple[Any, type]] = {
        "model_id": (maker.get("path"), str),
        "prompt_hash": (_prompt_hash(folder, dataset), str),
        "scorer": (scorer.get("type") if isinstance(scorer, dict) else None, str),
        "max_out_len": (length, int),
        "batch_size": (maker.get("batch_size"), int),
    }
    return {key: value for key, (value, kind) in found.items() if isinstance(value, kind)}


def _entries(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a list of the newest dumped config, by abbr."""
    for path in sorted((folder / "configs").glob("*.py"), reverse=True):
        try:
            found = _assigned(ast.parse(path.read_text(encoding="utf-8")), name)
        except (SyntaxError, ValueError, TypeError, OSError, RecursionError, MemoryError):  # cut, or not a dump at all
            continue
        if found is not None:
            return {str(entry.get("abbr")): entry for entry in found if isinstance(entry, dict)}
    return {}


def _assigned(tree: ast.Module, name: str) -> list[Any] | None:
    """Return the list that is assigned to ``name``, read as literals; None where nothing is."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            entries = _literal(node.value)
            return entries if isinstance(entries, list) else []
    return None


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(entry) for entry in node.elts]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return {keyword.arg: _literal(keyword.value) for keyword in node.keywords if keyword.arg}
    if isinstance(node, ast.Dict):
        return {_literal(key): _literal(value) for key, value in zip(node.keys, node.values, strict=True) if key}
    return ast.unparse(node)


def _inferencer(data: dict[str, Any]) -> dict[str, Any]:
    inference = data.get("infer_cfg")
    found = inference.get("inferencer") if isinstance(inference, dict) else None
    return found if isinstance(found, dict) else {}


def _prompt_hash(folder: Path, dataset: str) -> str | None:
    for path in sorted((folder / "summary").glob("*.csv"), reverse=True):
        with (
            contextlib.suppress(OSError, csv.Error),
            path.open(newline="", encoding="utf-8", errors="replace") as stream,
        ):
            for row in csv.DictReader(stream):  # a summary that is none tells nothing; an older one may
                if row.get("dataset") == dataset and row.get("version") not in (None, "", "-"):
                    return row["version"]
    return None
