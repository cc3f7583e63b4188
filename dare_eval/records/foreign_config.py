"""What a plain OpenCompass run recorded about its settings: the dumped config and the summary table.

The dumped config is Python; it is read as literals (``ast``) and never executed.
"""

from __future__ import annotations

import ast
import csv
from pathlib import Path
from typing import Any


def foreign_settings(folder: Path, model: str, dataset: str) -> dict[str, Any]:
    """Return prompt hash, evaluator, response length and model path as far as the run's own files tell them."""
    models, datasets = _entries(folder, "models"), _entries(folder, "datasets")
    maker, data = models.get(model, {}), datasets.get(dataset, {})
    scorer = data.get("eval_cfg", {}).get("evaluator", {}) if isinstance(data.get("eval_cfg"), dict) else {}
    length = _inferencer(data).get("max_out_len", maker.get("max_out_len"))
    found = {
        "model_id": maker.get("path"),
        "prompt_hash": _prompt_hash(folder, dataset),
        "scorer": scorer.get("type") if isinstance(scorer, dict) else None,
        "max_out_len": length if isinstance(length, int) else None,
        "batch_size": maker.get("batch_size"),
    }
    return {key: value for key, value in found.items() if value is not None}


def _entries(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a list of the newest dumped config, by abbr."""
    for path in sorted((folder / "configs").glob("*.py"), reverse=True):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError, OSError, RecursionError):  # a cut dump tells nothing; others may
            continue
        for node in tree.body:
            named = isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
            if isinstance(node, ast.Assign) and named:
                entries = _literal(node.value)
                found = entries if isinstance(entries, list) else []
                return {str(entry.get("abbr")): entry for entry in found if isinstance(entry, dict)}
    return {}


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
        with path.open(newline="", encoding="utf-8", errors="replace") as stream:
            for row in csv.DictReader(stream):
                if row.get("dataset") == dataset and row.get("version") not in (None, "", "-"):
                    return row["version"]
    return None
