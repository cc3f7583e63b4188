"""Plain text for pretraining: documents joined by EOS and cut into sequences of one length, all of it trainable.

LLaDA (arXiv 2502.09992) gives one sequence in a hundred a random shorter length, so that the model has seen every
length; ``random_length_share`` does that. Leaves out shuffling (``dare_train.data.supply``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from dare_eval.errors import DataError
from dare_train.config import TextSettings
from dare_train.data.render import Example
from dare_train.data.rows import SkippedRows, field_text, selected
from dare_train.data.spec import Selection
from dare_train.draws import derive, seeded

CHUNK_DOCUMENTS = 256


def text_sequences(
    tokenizer: Any,
    eos_id: int,
    selections: Sequence[Selection],
    settings: TextSettings,
    skipped: SkippedRows,
    *,
    seed: int = 0,
) -> Iterator[Example]:
    """Yield sequences of ``settings.sequence_length`` tokens; the rest of the last documents is left out.

    The places of the shorter sequences follow from ``seed``, so a stream that is read again is cut the same way.
    """
    generator = seeded(derive(seed, "lengths"))
    held: list[int] = []
    for ids in _documents(tokenizer, selections, settings, skipped):
        held += [*ids, eos_id]
        while len(held) >= settings.sequence_length:
            length = _length(settings, generator)
            yield Example(tuple(held[:length]), 0)
            del held[:length]


def _length(settings: TextSettings, generator: torch.Generator) -> int:
    if float(torch.rand((), generator=generator)) >= settings.random_length_share:
        return settings.sequence_length
    return int(torch.randint(1, settings.sequence_length + 1, (), generator=generator))


def _documents(
    tokenizer: Any, selections: Sequence[Selection], settings: TextSettings, skipped: SkippedRows
) -> Iterator[list[int]]:
    for selection in selections:
        texts: list[str] = []
        for text in _texts(selection, settings, skipped):
            texts.append(text)
            if len(texts) == CHUNK_DOCUMENTS:
                yield from tokenizer(texts, add_special_tokens=False)["input_ids"]
                texts = []
        if texts:
            yield from tokenizer(texts, add_special_tokens=False)["input_ids"]


def _texts(selection: Selection, settings: TextSettings, skipped: SkippedRows) -> Iterator[str]:
    for index, record in selected(selection, whole=False):
        try:
            yield field_text(record, settings.text_field)
        except DataError as error:
            if settings.on_bad_row == "refuse":
                raise DataError(
                    f"row {index} of {selection} has no text: {error.what}",
                    seen=error.seen,
                    allowed=error.allowed,
                    remedy="set data.text_field to the column with the text, or leave bad rows out: --skip-bad",
                ) from None
            skipped.add(error.what, (str(selection), index))
