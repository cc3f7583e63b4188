"""Answers multiple-choice items by likelihood: every option of an item scored, the best one is the answer.

Only what differs between the options is masked and scored; the options of an item share their random numbers.
Scores, standard errors and forwards of every option go into the item's record, so rankings can be changed later.
``LabelledInferencer`` comes before upstream's class in the bases of the two inferencers, which say how to split.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from opencompass.utils import get_logger

from dare_eval.errors import SetupError
from dare_eval.inferencers.item_loop import Check, ItemContext, ItemLoop, identity, write_predictions
from dare_eval.inferencers.item_store import ItemStore
from dare_eval.inferencers.label_prompts import LabelPrompts
from dare_eval.inferencers.likelihood import ScoredOption, choose
from dare_eval.inferencers.options import Pair, common_prefix, split_options
from dare_eval.inferencers.rows import Row, make_rows
from dare_eval.records.items import ItemRecord, sha256_text

FIELD = "likelihood"
"""Key of an item record's extra fields that holds the numbers of each option."""

Split = Callable[[int, Sequence[Any]], list[Pair]]
"""From an item's position and its prompts to (context ids, continuation ids) per label."""


@dataclass(frozen=True, slots=True)
class _Item:
    """An item ready to be scored."""

    row: Row
    texts: list[str]
    pairs: list[Pair]
    dropped: int


class LabelledInferencer:
    """What the likelihood inferencers share."""

    rank_by: ClassVar[str]
    """How options are compared where the model config does not say."""
    model: Any
    labels: Any
    max_seq_len: int | None
    batch_size: int | None
    output_json_filepath: str
    output_json_filename: str
    is_main_process: bool

    def __init__(self, model: Any, context: ItemContext | None = None, **kwargs: Any) -> None:
        super().__init__(model, **kwargs)  # type: ignore[call-arg]
        self.context = context

    def inference(
        self,
        retriever: Any,
        ice_template: Any = None,
        prompt_template: Any = None,
        output_json_filepath: str | None = None,
        output_json_filename: str | None = None,
    ) -> list[Any]:
        """Score what is missing and write the predictions; returns the labels chosen, in order."""
        folder = Path(output_json_filepath or self.output_json_filepath)
        target = folder / (output_json_filename or self.output_json_filename)
        prompts = LabelPrompts(retriever, ice_template, prompt_template, self.labels)
        test = retriever.test_ds
        run = LabelledRun(
            self.model, prompts, partial(self.split, test), self.rank_by, self.max_seq_len, partial(self.look, test)
        )
        return run.run(target, self.context, self.batch_size or 1, writes=self.is_main_process)

    def look(self, test: Any, index: int) -> None:
        """Raise ``DataError`` for an item that cannot be scored, as far as its row shows it; here for none."""

    def split(self, test: Any, index: int, prompts: Sequence[Any]) -> list[Pair]:
        """Return (context ids, continuation ids) of each option of item ``index``."""
        return split_options([self.model.open_ids(prompt) for prompt in prompts])


class LabelledRun:
    """One data set answered by likelihood."""

    def __init__(
        self,
        model: Any,
        prompts: LabelPrompts,
        split: Split,
        rank_by: str,
        max_seq_len: int | None,
        look: Check | None = None,
    ) -> None:
        if not getattr(model, "estimates_likelihood", False):
            raise SetupError(
                f"{type(model).__name__} cannot score continuations",
                remedy="use a native wrapper (LLaDAModel, DreamModel, SDARModel, LLaDA2Model or their Base forms)",
            )
        self.model, self.prompts, self.split, self.look = model, prompts, split, look
        self.rank_by = model.likelihood_task.rank_by or rank_by
        self.limit = model.pair_limit(max_seq_len)

    def run(self, target: Path, context: ItemContext | None, batch_items: int, *, writes: bool) -> list[Any]:
        """Answer what is missing, write the predictions file ``target`` and return the labels chosen."""
        reader = self.prompts.retriever.dataset_reader
        test = reader.dataset["test"]
        known = context or ItemContext(target.stem, make_rows(test, target.stem), "")
        with closing(ItemStore(target.parent, target.stem, known.base, known.fingerprint, writes=writes)) as store:
            loop = ItemLoop(store, known.rows, batch_items)
            records = loop.run(partial(self._answer, known.rows), self._check)
        labels = [self.prompts.labels[record.extra[FIELD]["chosen"]] for record in records]
        golds = test[reader.output_column] if reader.output_column else [None] * len(records)
        if writes:
            write_predictions(target, [
                prediction(record, label, gold) for record, label, gold in zip(records, labels, golds, strict=True)
            ])  # fmt: skip
        return labels

    def _check(self, index: int) -> None:
        """Refuse an item whose options exceed the context even without examples, or that has nothing to score."""
        if self.look is not None:
            self.look(index)
        for prompt in self._parsed(self.prompts.bare(index)):
            # Tokens are at least a byte long, so short texts need no tokenizer.
            if len(self.model.open_text(prompt).encode()) >= self.model.pair_limit():
                self.model.check_length(len(self.model.open_ids(prompt)))

    def _answer(self, rows: Sequence[Row], batch: list[int]) -> list[ItemRecord]:
        started = time.perf_counter()
        items = [self._prepare(index, rows[index]) for index in batch]
        groups = [item.row.item_id for item in items for _ in item.pairs]
        results = iter(self.model.log_likelihoods([pair for item in items for pair in item.pairs], groups))
        scored = [[next(results) for _ in item.pairs] for item in items]
        wall_s = (time.perf_counter() - started) / len(batch)
        return [self._record(item, found, wall_s, len(batch)) for item, found in zip(items, scored, strict=True)]

    def _prepare(self, index: int, row: Row) -> _Item:
        prompts, dropped = self.prompts.of(index, self._fit)
        if dropped:
            get_logger().warning(f"item {index}: {dropped} few-shot examples dropped to fit {self.limit} tokens")
        parsed = self._parsed(prompts)
        pairs = self.split(index, parsed)
        for label, pair in zip(self.prompts.labels, pairs, strict=True):
            self.model.check_pair(pair, f"option '{label}'")
        return _Item(row, [self.model.open_text(one) for one in parsed], pairs, dropped)

    def _fit(self, prompts: Sequence[Any]) -> bool:
        return all(len(self.model.open_ids(prompt)) <= self.limit for prompt in self._parsed(prompts))

    def _parsed(self, prompts: Sequence[Any]) -> list[Any]:
        return [self.model.parse_template(prompt, mode="ppl") for prompt in prompts]

    def _record(self, item: _Item, results: Sequence[Any], wall_s: float, batch_rows: int) -> ItemRecord:
        options = [
            ScoredOption(label, result, len(self.model.codec.decode(rest).encode()))
            for label, result, (_, rest) in zip(self.prompts.labels, results, item.pairs, strict=True)
        ]
        best, lead = choose(options, self.rank_by)
        found = {
            "chosen": options.index(best),
            "rank_by": self.rank_by,
            **lead,
            "options": [{"label": one.label, **one.to_dict()} for one in options],
            **({"dropped_examples": item.dropped} if item.dropped else {}),
        }
        return ItemRecord(
            **identity(item.row),
            prompt=item.texts[0][: common_prefix(item.texts)],
            prompt_sha=sha256_text("\x00".join(item.texts)),
            response=str(best.label),
            nfe=sum(result.nfe for result in results),
            wall_s=wall_s,
            extra={FIELD: found, "batch_rows": batch_rows},
        )


def prediction(record: ItemRecord, label: Any, gold: Any) -> dict[str, Any]:
    """Return one entry of an upstream predictions file: the label chosen and the numbers of each option."""
    numbers = record.extra[FIELD]
    entry: dict[str, Any] = {"origin_prompt": record.prompt, "prediction": label}
    if gold is not None:
        entry["gold"] = gold
    for option in numbers["options"]:
        per_token = -option["per_token"]
        entry[f"label: {option['label']}"] = {"PPL": per_token, "Loglikelihood": option["loglik"], **option}
    return {**entry, "decode": {"nfe": record.nfe, "wall_s": record.wall_s}}
