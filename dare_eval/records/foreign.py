"""Results that plain OpenCompass left behind, as far as they can be known.

``predictions/<model>/<dataset>.json`` gives prompts and responses, the ``details`` in ``results/`` verdicts where
the evaluator wrote any. Nothing is scored again and nothing is guessed: decode settings, cost and the identity of
the weights are unknown here, and :func:`foreign_row` says so in its labels.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError
from dare_eval.records.atomic import read_json
from dare_eval.records.intervals import wilson
from dare_eval.records.item_files import ItemFile, LineProblem
from dare_eval.records.items import ItemRecord, item_id, sha256_text
from dare_eval.records.predictions import prediction_files, read_predictions
from dare_eval.records.shapes import is_number
from dare_eval.records.summary import ResultRow, summarise

_VERDICTS = ("correct", "is_correct", "cascade_correct", "exact_match", "passed")
_ANSWERS = ("pred", "predictions", "extracted")
_REFERENCES = ("answer", "refr", "references", "reference")
_REPEATS = "__repeats__"
_POSITION = re.compile(r"[0-9]{1,9}")
_RUNS = re.compile(r" \(\d+ runs average\)$")
_PERCENT_METRICS = ("accuracy", "score", "exact", "pass@1", "humaneval_pass@1", "exact_match", "em")


def foreign_results(folder: Path) -> list[tuple[str, str]]:
    """Return every ``(model, data set)`` that has predictions or results, sorted."""
    found = set()
    for model in _children(folder / "predictions"):
        found |= {(model.name, dataset) for dataset in prediction_files(model)}
    for model in _children(folder / "results"):
        found |= {(model.name, path.stem) for path in model.glob("*.json")}
    return sorted(found)


def foreign_items(folder: Path, model: str, dataset: str) -> ItemFile:
    """Return the predictions of one result as item records, with verdicts where the evaluator gave any.

    Item ids are hashes of data set, prompt and gold answer, so two such folders pair item by item; they never
    equal ids of our own runs, which hash the data set's row.
    """
    files = prediction_files(folder / "predictions" / model).get(dataset, [])
    problems: list[LineProblem] = []
    predictions: list[dict[str, Any]] = []
    for path in files:
        found = read_predictions(path)
        predictions.extend(found.items.values())
        if found.problem:
            problems.append(LineProblem(str(path), 0, "corrupt", found.problem, ""))
    details, trouble = _details(folder / "results" / model / f"{dataset}.json")
    problems.extend(trouble)
    repeats = max((count for detail in details.values() if isinstance(count := detail.get(_REPEATS), int)), default=1)
    copies: Counter[str] = Counter()
    records = []
    for index, prediction in enumerate(predictions):
        record = _record(dataset, index, prediction, details.get(index, {}))
        copies[record.item_id] += 1
        records.append(_numbered(record, copies[record.item_id] - 1, repeats))
    return ItemFile(records, problems, 0)


def foreign_row(folder: Path, model: str, dataset: str) -> ResultRow:
    """Return the row of one result, with a label for everything that is not known about it."""
    file = foreign_items(folder, model, dataset)
    scores, problem = _scores(folder / "results" / model / f"{dataset}.json")
    metric = next((name for name in sorted(scores, key=_rank)), "accuracy")
    labels = ["decode spec unknown", "weights unknown", "cost unknown"]
    labels += [f"{Path(p.path).name}: {p.message}" for p in file.problems] + ([problem] if problem else [])
    row = summarise(file.records, model=model, dataset=dataset, metric=metric)
    reported = scores.get(metric)
    if row.n == len(file.records) > 0 and reported is not None and abs((row.value or 0.0) - reported) > 0.01:
        labels.append(f"items give {row.value:.2f}, the result file says {reported:.2f}")
    elif row.n < len(file.records) or not file.records:
        row = reported_row(row, reported, len(file.records), metric)
        labels.append("no verdict per item" if reported is not None else "not scored")
    return ResultRow.from_dict(row.to_dict() | {"labels": labels})


def reported_row(row: ResultRow, reported: float | None, n: int, metric: str) -> ResultRow:
    """Fall back on the reported number; it has an interval only where it is a share of ``n`` items."""
    values: dict[str, Any] = {"value": reported, "low": None, "high": None, "method": None, "n": n, "unscored": 0}
    right = round((reported or 0.0) * n / 100)
    if (
        reported is not None
        and n
        and _RUNS.sub("", metric) in _PERCENT_METRICS
        and abs(100 * right / n - reported) < 0.01
    ):
        found = wilson(right, n)
        values |= {"low": 100 * found.low, "high": 100 * found.high, "method": found.method}
    return ResultRow.from_dict(row.to_dict() | values)


def _record(dataset: str, index: int, prediction: Mapping[str, Any], detail: Mapping[str, Any]) -> ItemRecord:
    prompt = _text(prediction.get("origin_prompt"))
    gold = prediction.get("gold", _first(detail, _REFERENCES))
    verdict = next((detail[name] for name in _VERDICTS if isinstance(detail.get(name), bool)), None)
    answer = _first(detail, _ANSWERS)
    return ItemRecord(
        item_id=item_id(dataset, "", [prompt, gold]),
        index=index,
        prompt=prompt,
        prompt_sha=sha256_text(prompt),
        response=_text(prediction.get("prediction")),
        extracted=None if answer is None else _text(answer),
        rule="opencompass" if answer is not None else "",
        correct=verdict,
        value=None if verdict is None else float(verdict),
        upstream_correct=verdict,
        reference=gold,
    )


def _numbered(record: ItemRecord, copy: int, repeats: int) -> ItemRecord:
    """Give later copies of one prompt ids of their own: repeats of it where the run repeats, else other items."""
    if not copy:
        return record
    key = sha256_text(f"{record.item_id}/{copy}")
    if repeats > 1:
        return dataclasses.replace(record, item_id=key, question_id=record.item_id, repeat=copy)
    return dataclasses.replace(record, item_id=key, question_id=key)


def _details(path: Path) -> tuple[dict[int, dict[str, Any]], list[LineProblem]]:
    if not path.exists():
        return {}, []
    try:
        found = read_json(path, "result")
    except DareError as error:
        return {}, [LineProblem(str(path), 0, "corrupt", error.what, "")]
    details = found.get("details") if isinstance(found, dict) else None
    if isinstance(details, dict):
        numbered = {key: value for key, value in details.items() if _POSITION.fullmatch(key)}
        return {int(key): value for key, value in numbered.items() if isinstance(value, dict)}, []
    return _replicas([value for value in details if isinstance(value, dict)] if isinstance(details, list) else []), []


def _replicas(details: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the details by prediction: upstream lists the values of all replicas of one question side by side."""
    found: dict[int, dict[str, Any]] = {}
    for question, detail in enumerate(details):
        lists = [value for name in _VERDICTS + _ANSWERS if isinstance(value := detail.get(name), list)]
        count = max((len(values) for values in lists), default=1)
        for replica in range(count):
            flat = {key: _nth(value, replica, count) for key, value in detail.items()}
            found[replica * len(details) + question] = flat | {_REPEATS: count}
    return found


def _nth(value: Any, replica: int, count: int) -> Any:
    return value[replica] if isinstance(value, list) and len(value) == count else value


def _scores(path: Path) -> tuple[dict[str, float], str | None]:
    try:
        found = read_json(path, "result")
    except DareError as error:
        return {}, error.what
    if not isinstance(found, dict):
        return {}, "result is not an object"
    numbers = {key: float(value) for key, value in found.items() if is_number(value)}
    return numbers, str(found["error"]) if "error" in found else None


def _rank(metric: str) -> tuple[int, str]:
    """Order metrics: shares of right answers first, in the order of preference, then the rest by name."""
    name = _RUNS.sub("", metric)
    return (_PERCENT_METRICS.index(name) if name in _PERCENT_METRICS else len(_PERCENT_METRICS), metric)


def _children(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(turn, dict) and "prompt" in turn for turn in value):
        return "\n".join(f"{turn.get('role', '')}: {turn['prompt']}" for turn in value)
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
