"""``DiffusionGenInferencer``: OpenCompass' generation inferencer that keeps what each answer cost and survives crashes.

Our infer task puts it in the place of upstream's ``GenInferencer`` when it builds the inferencer, so upstream data
set configs and their prompt hashes stay as they are. Prompts are made by upstream's code; this file only decodes,
appends each batch to the item file and finally writes the predictions in upstream's format, with the scalars of
decoding under ``record["decode"]``. Several rounds of conversation and ``--dump-only-message-path`` are left to
upstream's own loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from opencompass.openicl.icl_inferencer import GenInferencer

from dare_eval.errors import IncompleteError, UsageError
from dare_eval.inferencers.item_loop import ItemContext, ItemLoop, identity, write_predictions
from dare_eval.inferencers.item_store import ItemStore
from dare_eval.inferencers.rows import Row, make_rows
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


class DiffusionGenInferencer(GenInferencer):
    """Generation inferencer for models whose ``generate`` may return texts with ``.stats``.

    ``generate`` is called with ``rows`` (list of :class:`Row`) when its signature names it. Raises
    ``ItemsFailedError`` when an item is missing at the end; no predictions file is written then.
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
            answer = partial(self._decode, prompts, context.rows)
            check = partial(self._check, prompts, context.rows) if hasattr(self.model, "check_prompt") else None
            records = ItemLoop(store, context.rows, self.batch_size or 1).run(answer, check)
        finally:
            store.close()
        if self.is_main_process:
            write_predictions(target, [
                prediction(record, self.model.parse_template(prompt, mode="gen"), gold)
                for record, prompt, gold in zip(records, prompts, golds, strict=True)
            ])  # fmt: skip
        return [record.response for record in records]

    def _check(self, prompts: list[Any], rows: Sequence[Row], index: int) -> None:
        self.model.check_prompt(self.model.parse_template(prompts[index], mode="gen"), rows[index])

    def _decode(self, prompts: list[Any], rows: Sequence[Row], batch: list[int]) -> list[ItemRecord]:
        texts = self._generate([prompts[i] for i in batch], [rows[i] for i in batch])
        return [self._record(rows[i], prompts[i], text, len(batch)) for i, text in zip(batch, texts, strict=True)]

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

    def _record(self, row: Row, prompt: Any, text: str, batch_rows: int) -> ItemRecord:
        stats = getattr(text, "stats", None) or {}
        rendered = stats.get("prompt") or _as_text(self.model.parse_template(prompt, mode="gen"))
        return ItemRecord(
            **identity(row),
            prompt=rendered,
            prompt_sha=sha256_text(rendered),
            response=str(text),
            extra={
                "batch_rows": batch_rows,
                **{name: stats[name] for name in ("cut_tokens", "x0", "prompt_tokens") if stats.get(name)},
            },
            **{name: stats[name] for name in DECODE_FIELDS if stats.get(name) is not None},
        )


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


def _as_text(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n\n".join(item if isinstance(item, str) else f"{item['role']}: {item['prompt']}" for item in prompt)
