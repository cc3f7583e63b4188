"""Results as CSV, JSON, Markdown or LaTeX, never a bare number: interval, n, NFE and decode spec go with each.

Bold (Markdown, LaTeX) marks results that are significantly better than all others of their column
(``records.best``). Every text is escaped for its format; CSV cells cannot become formulas.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dare_eval.records.safe import csv_cell, markdown_text, one_line
from dare_eval.records.tables import Result

FORMATS = ("csv", "json", "markdown", "latex")
_COLUMNS = ("model", "dataset", "metric", "value", "low", "high", "n", "expected", "nfe", "tpf", "tps")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_SPEC_KEYS = ("gen_length", "block_length", "steps", "policy", "threshold", "temperature", "cache")


def export_text(
    results: Sequence[Result], style: str, bold: Collection[int] = (), runs: Mapping[int, str] | None = None
) -> str:
    """Return ``results`` in one of :data:`FORMATS`.

    ``bold`` holds ids of results to mark, ``runs`` the run id of each evaluation (CSV and JSON name it).
    """
    lines = [_line(result, bold, runs or {}) for result in results]
    if style == "csv":
        return _csv(lines)
    if style == "json":
        return json.dumps(lines, indent=1) + "\n"
    return _markdown(results, bold) if style == "markdown" else _latex(results, bold)


def _line(result: Result, bold: Collection[int], runs: Mapping[int, str]) -> dict[str, Any]:
    return {
        "run": runs.get(result.evaluation_id, ""),
        **{name: getattr(result, name) for name in _COLUMNS},
        "significantly_best": result.id in bold,
        "weight_hash": result.weight_hash,
        "decode_spec": result.row.get("decode_spec"),
        "labels": result.labels,
    }


def _csv(lines: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    names = ["run", *_COLUMNS, "significantly_best", "weight_hash", "decode_spec", "labels"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        flat = {**line, "decode_spec": json.dumps(line["decode_spec"], sort_keys=True)}
        flat["labels"] = "; ".join(line["labels"])
        writer.writerow({name: csv_cell(value) for name, value in flat.items()})
    return out.getvalue()


def _markdown(results: Sequence[Result], bold: Collection[int]) -> str:
    names, notes = _notes(results)
    lines = ["| model | benchmark | metric | score | n | NFE | tok/s | |", "|---|---|---|---|---|---|---|---|"]
    for result in results:
        score = f"**{_score(result)}**" if result.id in bold else _score(result)
        texts = [_md(result.model), _md(result.dataset), _md(result.metric), score, _count(result)]
        lines.append("| " + " | ".join([*texts, _cost(result.nfe), _cost(result.tps), names[result.id]]) + " |")
    lines += ["", *[f"{key}: {_md(text)}" for key, text in notes.items()]]
    return "\n".join(lines) + "\n"


def _latex(results: Sequence[Result], bold: Collection[int]) -> str:
    names, notes = _notes(results)
    lines = [r"\begin{tabular}{lllrrrr}", r"\toprule"]
    lines += [r"model & benchmark & metric & score & $n$ & NFE & tok/s \\", r"\midrule"]
    for result in results:
        score = _score(result).replace("±", r"$\pm$")
        score = rf"\textbf{{{score}}}" if result.id in bold else score
        texts = [_tex(result.model), _tex(result.dataset), _tex(result.metric), f"{score}$^{{{names[result.id]}}}$"]
        lines.append(" & ".join([*texts, _count(result), _cost(result.nfe), _cost(result.tps)]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize $^{{{key}}}$ {_tex(text)}" for key, text in notes.items()]
    return "\n".join(lines) + "\n"


def _notes(results: Sequence[Result]) -> tuple[dict[int, str], dict[str, str]]:
    """Return a footnote mark for each result and the text behind each mark; equal notes share a mark."""
    marks: dict[str, str] = {}
    names = {}
    for result in results:
        about = [f"n = {_count(result)}", spec_text(result.row.get("decode_spec")), *result.labels]
        text = "; ".join(dict.fromkeys(about))
        names[result.id] = marks.setdefault(text, _letters(len(marks)))
    return names, {mark: text for text, mark in marks.items()}


def spec_text(spec: Mapping[str, Any] | None) -> str:
    """Return the decode settings that people ask for first, in one line."""
    if not spec:
        return "decode spec unknown"
    return ", ".join(f"{key} {spec[key]}" for key in _SPEC_KEYS if spec.get(key) is not None) or "decode spec recorded"


def _letters(number: int) -> str:
    return (_letters(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


def _score(result: Result) -> str:
    if result.value is None:
        return "-"
    if result.low is None or result.high is None:
        return f"{result.value:.2f}"
    return f"{result.value:.2f} ± {(result.high - result.low) / 2:.2f}"


def _count(result: Result) -> str:
    return str(result.n) if result.expected in (None, result.n) else f"{result.n} of {result.expected}"


def _cost(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _md(text: str) -> str:
    return markdown_text(text, 200)


def _tex(text: str) -> str:
    written = "".join(_LATEX.get(mark, mark) for mark in one_line(text, 200))
    return "{}" + written if written.startswith(("[", "*")) else written  # behind a row's end they are its options
