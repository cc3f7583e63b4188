"""How many evaluated questions occur in the training rows: exactly, after normalising, or by a shared run of 13 words.

Compared are the last user turns of both sides, without chat templates and special tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dare_eval.records.overlap import overlap
from dare_eval.records.predictions import prediction_files, read_predictions
from dare_eval.records.runs import Run
from dare_train.config import DataSettings
from dare_train.data.rows import SkippedRows, read_rows
from dare_train.data.spec import parse_sources, separate


def training_overlap(settings: DataSettings, run: Run) -> dict[str, dict[str, int]]:
    """Return, per evaluated data set, its items and how many of them the training rows repeat, by test."""
    found = {}
    for model, dataset in run.results():
        files = prediction_files(run.folder / "predictions" / model).get(dataset, [])
        questions = [
            _question(item.get("origin_prompt")) for path in files for item in read_predictions(path).items.values()
        ]
        report = overlap(training_questions(settings), questions)
        counts = {test: report.count(test) for test in ("exact", "normalised", "ngram")}
        found[dataset] = {"items": len(questions), **counts}
    return found


def training_questions(settings: DataSettings) -> Iterator[str]:
    """Yield the last user turn of every training row."""
    for selection in separate(parse_sources(settings.train))[0]:
        for row in read_rows(selection, settings, SkippedRows()):
            yield row.turns[-1]["content"] if row.turns else ""


def _question(prompt: Any) -> str:
    if isinstance(prompt, list):
        texts = [
            str(turn.get("prompt", "")) for turn in prompt if isinstance(turn, dict) and turn.get("role") == "HUMAN"
        ]
        return texts[-1] if texts else ""
    return str(prompt or "")
