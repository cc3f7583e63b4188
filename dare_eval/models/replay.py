"""``ReplayModel``: recorded generations served as a model, to exercise scorers and reports on real outputs.

A recordings file is JSON lines (``.gz`` allowed) with ``item`` (or ``id``) and ``output``, optionally
``gen_length``, ``steps``, ``block_length`` and ``question``. One generation length is served. An item is found by
the row's id, else by the recorded question that stands in the last user turn (the longest one that does). Items
without a recording come back marked ``unrecorded``: they leave the score and are counted beside it. Nothing is
decoded, so token counts and speed are unknown; ``nfe`` is the recorded number of steps.

    dict(type=ReplayModel, abbr="recorded-256", path="$DARE_DATA/recorded/x.jsonl.gz", gen_length=256)
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opencompass.models.base import BaseModel
from opencompass.models.base_api import APITemplateParser

from dare_eval.errors import DataError
from dare_eval.inferencers.rows import Row
from dare_eval.models.settings import check_names
from dare_eval.models.texts import HUMAN_BOT_ROUND, GenText, last_question
from dare_eval.records.provenance import file_sha256
from dare_eval.runtime.data_paths import expand
from dare_eval.runtime.model_facts import ModelFacts

ID_KEYS = ("item", "id", "task_id", "key")
QUESTION_KEYS = ("question", "problem", "prompt", "text", "puzzle")
EOS_TEXTS = ("<|eot_id|>", "<|endoftext|>")


class ReplayModel(BaseModel):
    """Serves the recordings in ``path`` with ``gen_length`` (needed when the file holds several).

    ``questions`` names a further file with ids and question texts, for data sets whose loader drops the id.
    ``eos_texts`` are the end markers that the recording kept as text.
    """

    def __init__(
        self,
        path: str,
        gen_length: int | None = None,
        questions: str | None = None,
        eos_texts: Sequence[str] = EOS_TEXTS,
        max_seq_len: int = 1 << 20,
        meta_template: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, max_seq_len)
        self.template_parser = APITemplateParser(meta_template or HUMAN_BOT_ROUND)
        rows = _recordings(Path(expand(path)), gen_length)
        self.eos_texts = tuple(eos_texts)
        self.keeps_ends = any(mark in row["output"] for row in rows for mark in self.eos_texts)
        self.by_id: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            self.by_id.setdefault(_item(row), []).append(row)
        named = rows if questions is None else read_jsonl(Path(expand(questions)))
        asked = {text: _item(row) for row in named if (text := _question(row)) and _item(row)}
        self.questions = sorted(asked.items(), key=lambda pair: -len(pair[0]))

    @classmethod
    def facts(cls, settings: Mapping[str, Any]) -> ModelFacts:
        """Check that the recordings are there and hold the generation length asked for."""
        check_names(cls, settings)
        place = Path(expand(str(settings.get("path", ""))))
        first = _recordings(place, settings.get("gen_length"))[0]
        known: dict[str, Any] = {key: first[key] for key in ("gen_length", "steps", "block_length") if key in first}
        return ModelFacts(str(settings["path"]), "", file_sha256(place), {**known, "engine": "recorded"})

    def generate(
        self, inputs: Sequence[Any], max_out_len: int | None = None, rows: Sequence[Row] | None = None
    ) -> list[GenText]:
        """Return the recording of each item, or an empty text marked ``unrecorded``."""
        known: Sequence[Row | None] = rows if rows is not None else [None] * len(inputs)
        return [self._answer(prompt, row) for prompt, row in zip(inputs, known, strict=True)]

    def get_token_len(self, prompt: str) -> int:
        """Return the number of words: there is no tokenizer."""
        return len(prompt.split())

    def _answer(self, prompt: Any, row: Row | None) -> GenText:
        found = self._find(prompt, row)
        repeat = row.repeat if row is not None else 0
        if repeat >= len(found):
            return GenText("", {"unrecorded": True})
        text = str(found[repeat]["output"])
        ends = [place for mark in self.eos_texts if (place := text.find(mark)) >= 0]
        unended = "length" if self.keeps_ends else None
        stats = {"nfe": found[repeat].get("steps"), "stop": "eos" if ends else unended}
        return GenText(text[: min(ends)] if ends else text, stats)

    def _find(self, prompt: Any, row: Row | None) -> list[dict[str, Any]]:
        for key in ID_KEYS if row is not None else ():
            name = row.fields.get(key) if row is not None else None
            if name is not None and str(name) in self.by_id:
                return self.by_id[str(name)]
        asked = last_question(prompt)
        item = next((item for text, item in self.questions if text in asked), "")
        return self.by_id.get(item, [])


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON-lines file, gzipped or not; raises ``DataError`` naming file and line."""
    rows = []
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = raw.decode("utf-8-sig").split("\n")  # not splitlines: a JSON text may hold a line separator
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(
            "recordings cannot be read", seen=f"{path}: {error}", remedy="check the path in the config"
        ) from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(
                    "a line is not JSON",
                    seen=f"{path}:{number}: {error}",
                    remedy="remove the line, or copy the file again",
                ) from error
            if not isinstance(row, dict):
                raise DataError(
                    "a line is no JSON object", seen=f"{path}:{number}", allowed="lines with item and output"
                )
            rows.append(row)
    return rows


def _recordings(path: Path, gen_length: int | None) -> list[dict[str, Any]]:
    rows = read_jsonl(path)
    lengths = sorted({row["gen_length"] for row in rows if "gen_length" in row}, key=str)
    if gen_length is not None and lengths:
        rows = [row for row in rows if row.get("gen_length") == gen_length]
    elif len(lengths) > 1:
        rows = []
    unusable = next((row for row in rows if not _item(row) or not isinstance(row.get("output"), str)), None)
    if not rows or unusable is not None:
        raise DataError(
            "a recording lacks its item id or its output"
            if unusable
            else f"no recordings with gen_length {gen_length}"
            if lengths
            else "the recordings file is empty",
            seen=f"{path}: {sorted(unusable) if unusable else f'lengths {lengths}'}",
            allowed="gen_length = one of " + ", ".join(map(str, lengths)) if lengths else "lines with item and output",
            remedy="set gen_length in the model config" if lengths else "check the file that path names",
        )
    return rows


def _item(row: Mapping[str, Any]) -> str:
    return next((str(row[key]) for key in ID_KEYS if row.get(key) is not None), "")


def _question(row: Mapping[str, Any]) -> str:
    return next((str(row[key]) for key in QUESTION_KEYS if row.get(key)), "")
