"""``DiffusionGenInferencer``: OpenCompass' generation inferencer that keeps what each answer cost and survives crashes.

Our infer task puts it in the place of upstream's ``GenInferencer`` when it builds the inferencer, so upstream data
set configs and their prompt hashes stay as they are. Prompts are made by upstream's code; this file only decodes,
appends each batch to the item file and finally writes the predictions in upstream's format, with the scalars of
decoding under ``record["decode"]``. Several rounds of conversation and ``--dump-only-message-path`` are left to
upstream's own loop.
"""

from __future__ import annotations

import inspect
import json
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from opencompass.openicl.icl_inferencer import GenInferencer
from opencompass.utils import get_logger

from dare_eval.errors import IncompleteError, UsageError
from dare_eval.inferencers.item_store import ItemStore
from dare_eval.inferencers.rows import Row, make_rows
from dare_eval.records.atomic import write_atomic
from dare_eval.records.items import ItemRecord, sha256_text

DECODE_FIELDS = (
    "tokens",
    "nfe",
    "nfe_by_block",
    "generated_tokens",
    "wall_s",
    "step_map",
    "edits",
    "stop",
    "unrecorded",
)
SCALARS = ("nfe", "generated_tokens", "wall_s", "stop")
MAX_FAILED_ITEMS = 5
PROGRESS_S = 15.0


class ItemsFailedError(IncompleteError):
    """The model raised on some items; ``index`` is the first of them, ``trace`` the traceback of its cause."""

    def __init__(self, failed: Sequence[tuple[Row, Exception]], done: int, total: int) -> None:
        row, cause = failed[0]
        self.index, self.item_id = row.index, row.item_id
        self.trace = "".join(traceback.format_exception(cause))
        others = f" and on {len(failed) - 1} more" if len(failed) > 1 else ""
        super().__init__(
            f"the model raised on item {row.index}{others}: {type(cause).__name__}: {cause}",
            seen=f"{done} of {total} items decoded and kept",
            remedy=getattr(cause, "remedy", "")
            or "repair the cause and run the same command again: only the missing items run",
        )


@dataclass(frozen=True, slots=True)
class ItemContext:
    """What our infer task knows about the rows; absent under the stock task, which then cannot resume."""

    base: str
    """Abbr of the whole data set, also for a part of it."""
    rows: Sequence[Row]
    """The rows of this part, in order."""
    fingerprint: str
    """Fingerprint of this model on this data set."""


@dataclass(slots=True)
class _Work:
    """State of one call of ``inference``."""

    store: ItemStore
    prompts: list[Any]
    rows: Sequence[Row]
    failed: list[tuple[Row, Exception]] = field(default_factory=list)
    decoded: int = 0
    last_note_s: float = field(default_factory=time.monotonic)


class DiffusionGenInferencer(GenInferencer):
    """Generation inferencer for models whose ``generate`` may return texts with ``.stats``.

    ``generate`` is called with ``rows`` (list of :class:`Row`) when its signature names it. A batch that raises is
    tried again item by item, so one bad item costs nothing but itself; after five bad items the data set is given
    up. Raises :class:`ItemsFailedError` when an item is missing at the end; no predictions file is written then.
    """

    def __init__(
        self, model: Any, max_out_len: int | None = None, context: ItemContext | None = None, **kwargs: Any
    ) -> None:
        super().__init__(model, max_out_len, **kwargs)
        self.context = context
        if (getattr(model, "generation_kwargs", None) or {}).get("num_return_sequences", 1) != 1:
            raise UsageError(
                "generation_kwargs['num_return_sequences'] is not supported",
                seen=model.generation_kwargs,
                remedy="set n in the data set config: each repeat is decoded with a seed of its own",
            )

    def inference(
        self,
        retriever: Any,
        ice_template: Any = None,
        prompt_template: Any = None,
        output_json_filepath: str | None = None,
        output_json_filename: str | None = None,
    ) -> list[Any]:
        """Decode what is missing and write the predictions; returns the texts in order."""
        if self.multiround or self.dump_only_message_path:
            found: list[Any] = super().inference(
                retriever, ice_template, prompt_template, output_json_filepath, output_json_filename
            )
            return found
        target = Path(output_json_filepath or self.output_json_filepath) / (
            output_json_filename or self.output_json_filename
        )
        prompts = self.get_generation_prompt_list_from_retriever_indices(
            retriever.retrieve(),
            retriever,
            self.gen_field_replace_token,
            max_seq_len=self.max_seq_len,
            ice_template=ice_template,
            prompt_template=prompt_template,
        )
        reader = retriever.dataset_reader
        test = reader.dataset["test"]
        golds = test[reader.output_column] if reader.output_column else [None] * len(prompts)
        context = self.context or ItemContext(target.stem, make_rows(test, target.stem), "")
        store = ItemStore(target.parent, target.stem, context.base, context.fingerprint, writes=self.is_main_process)
        try:
            work = _Work(store, prompts, context.rows)
            self._decode_missing(work)
        finally:
            store.close()
        return self._finish(work, golds, target)

    def _decode_missing(self, work: _Work) -> None:
        todo = [index for index, row in enumerate(work.rows) if row.item_id not in work.store.done]
        if kept := len(work.rows) - len(todo):
            get_logger().info(f"{kept} of {len(work.rows)} items were decoded before and are kept")
        size = self.batch_size or 1
        for start in range(0, len(todo), size):
            self._decode(work, todo[start : start + size])
            self._note_progress(work, len(todo))
            if len(work.failed) >= MAX_FAILED_ITEMS:
                break

    def _decode(self, work: _Work, batch: list[int]) -> None:
        try:
            texts = self._generate([work.prompts[i] for i in batch], [work.rows[i] for i in batch])
        except Exception as error:
            if len(batch) == 1:
                work.failed.append((work.rows[batch[0]], error))
                work.store.append([self._failed_record(work, batch[0], error)])
                return
            for one in batch:
                if len(work.failed) < MAX_FAILED_ITEMS:
                    self._decode(work, [one])
            return
        work.decoded += len(batch)
        work.store.append([self._record(work, i, text, len(batch)) for i, text in zip(batch, texts, strict=True)])

    def _generate(self, prompts: list[Any], rows: list[Row]) -> list[str]:
        names = inspect.signature(self.model.generate).parameters
        extra: dict[str, Any] = {}
        if "stopping_criteria" in names:
            extra["stopping_criteria"] = self.stopping_criteria
        if "min_out_len" in names:
            extra["min_out_len"] = self.min_out_len
        if "rows" in names:
            extra["rows"] = rows
        with torch.no_grad():
            texts: list[str] = self.model.generate_from_template(prompts, max_out_len=self.max_out_len, **extra)
        if len(texts) != len(prompts):
            raise IncompleteError(
                "the model returned another number of answers", seen=len(texts), allowed=str(len(prompts))
            )
        return texts

    def _record(self, work: _Work, index: int, text: str, batch_rows: int) -> ItemRecord:
        stats = getattr(text, "stats", None) or {}
        prompt = stats.get("prompt") or _as_text(self.model.parse_template(work.prompts[index], mode="gen"))
        return ItemRecord(
            **_identity(work.rows[index]),
            prompt=prompt,
            prompt_sha=sha256_text(prompt),
            response=str(text),
            extra={"batch_rows": batch_rows, **({"cut_tokens": cut} if (cut := stats.get("cut_tokens")) else {})},
            **{name: stats[name] for name in DECODE_FIELDS if stats.get(name) is not None},
        )

    def _failed_record(self, work: _Work, index: int, error: Exception) -> ItemRecord:
        return ItemRecord(**_identity(work.rows[index]), error=f"{type(error).__name__}: {error}")

    def _finish(self, work: _Work, golds: Sequence[Any], target: Path) -> list[str]:
        missing = [row for row in work.rows if row.item_id not in work.store.done]
        if missing:
            raise ItemsFailedError(work.failed, len(work.rows) - len(missing), len(work.rows))
        records = [work.store.done[row.item_id] for row in work.rows]
        if self.is_main_process:
            write_predictions(target, [
                prediction(record, self.model.parse_template(prompt, mode="gen"), gold)
                for record, prompt, gold in zip(records, work.prompts, golds, strict=True)
            ])  # fmt: skip
        return [record.response for record in records]

    def _note_progress(self, work: _Work, total: int) -> None:
        if time.monotonic() - work.last_note_s >= PROGRESS_S:
            work.last_note_s = time.monotonic()
            get_logger().info(f"{work.decoded} of {total} items decoded")


def prediction(record: ItemRecord, prompt: Any, gold: Any) -> dict[str, Any]:
    """Return one entry of an upstream predictions file; a gold answer of 0 or "" is kept, unlike upstream."""
    entry: dict[str, Any] = {"origin_prompt": prompt, "prediction": record.response}
    if gold is not None:
        entry["gold"] = gold
    decode: dict[str, Any] = {name: getattr(record, name) for name in SCALARS if getattr(record, name) is not None}
    if record.unrecorded:
        decode["unrecorded"] = True
    entry["decode"] = decode
    return entry


def write_predictions(target: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Write a predictions file in upstream's format in one step: a killed writer leaves the old file or none."""
    numbered = {str(index): entry for index, entry in enumerate(entries)}
    write_atomic(target, json.dumps(numbered, indent=4, ensure_ascii=False, default=str))


def _identity(row: Row) -> dict[str, Any]:
    return {"item_id": row.item_id, "question_id": row.question_id, "index": row.index, "repeat": row.repeat}


def _as_text(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n\n".join(item if isinstance(item, str) else f"{item['role']}: {item['prompt']}" for item in prompt)
