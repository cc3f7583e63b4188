"""How many evaluated questions occur in the training rows: exactly, after normalising, or by a shared run of 13 words.

Compared are the last user turns of both sides, without chat templates and special tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dare_eval.records.overlap import overlap
from dare_eval.records.predictions import prediction_files, read_predictions
from dare_eval.records.runs import Run
from dare_train.config import DataSettings, PairSettings, TextSettings
from dare_train.data.pairs import pair_rows
from dare_train.data.rows import SkippedRows, read_rows, selected
from dare_train.data.spec import parse_sources, separate
from dare_train.rl.config import TaskSettings
from dare_train.rl.problems import questions


def training_overlap(settings: DataSettings | TextSettings | TaskSettings, run: Run) -> dict[str, dict[str, int]]:
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


def training_questions(settings: DataSettings | TextSettings | TaskSettings) -> Iterator[str]:
    """Yield the last user turn of every training row, or the texts of a pretraining set."""
    for selection in separate(parse_sources(settings.train))[0]:
        if isinstance(settings, TaskSettings):
            yield from questions(selection, settings)
        elif isinstance(settings, TextSettings):
            for _, record in selected(selection, whole=False):
                yield str(record.get(settings.text_field) or "")
        elif isinstance(settings, PairSettings):
            for chosen, _ in pair_rows(selection, settings, SkippedRows()):
                yield chosen.turns[-1]["content"]
        else:
            for row in read_rows(selection, settings, SkippedRows()):
                yield row.turns[-1]["content"] if row.turns else ""


def _question(prompt: Any) -> str:
    if isinstance(prompt, list):
        texts = [
            str(turn.get("prompt", "")) for turn in prompt if isinstance(turn, dict) and turn.get("role") == "HUMAN"
        ]
        return texts[-1] if texts else ""
    return str(prompt or "")
