"""Reads the rows a verb trains on and says what they were: in memory, prepared, or as a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from dare_eval.errors import DataError
from dare_train.config import DataSettings, PairSettings, TextSettings
from dare_train.data.pairs import Pair, pair_rows, read_pairs
from dare_train.data.prepared import read_prepared, rendering_digest
from dare_train.data.render import Example, Renderer
from dare_train.data.rows import SkippedRows, read_rows
from dare_train.data.spec import Selection, parse_sources, separate
from dare_train.data.supply import Memory, Stream, Supply
from dare_train.data.text import text_sequences
from dare_train.setup import ModelPlan

T = TypeVar("T")
SAMPLE_ROWS = 64
"""Rows of a stream that are read ahead to check it and to estimate its lengths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """Where rows come from and what the manifest says about them."""

    supply: Callable[[int], Supply[Any]]
    """Gives rows by position in the run, for a seed."""
    kept: Sequence[Any]
    """The rows in memory; none for a stream."""
    heldout: Sequence[Any]
    record: Mapping[str, Any]
    """Sources, counts, skipped rows, content hash."""
    row_tokens: float
    """Mean tokens of a training row."""
    answer_tokens: float
    """Mean tokens of it that carry loss."""


def read_examples(plan: ModelPlan, settings: DataSettings) -> TrainingRows:
    """Return rows of prompt and answer as tokens; raises ``DataError`` for bad rows and for an empty set."""
    train, held = separate(parse_sources(settings.train))
    skipped = SkippedRows()
    renderer = Renderer(plan.tokenizer, settings, plan.end_ids)

    def rows(selections: Sequence[Selection]) -> Iterator[Example]:
        return (e for item in selections for e in renderer.rows(read_rows(item, settings, skipped), skipped))

    heldout = {str(item): list(rows([item])) for item in held}
    if settings.streaming:
        return _streamed(partial(rows, train), _buffer(settings), train, heldout, skipped, alone)
    if settings.prepared:
        digest = rendering_digest(plan.tokenizer, settings)
        examples, sources = read_prepared(Path(settings.prepared), digest)
    else:
        found = {str(item): list(rows([item])) for item in train}
        examples = [example for part in found.values() for example in part]
        sources = {name: len(part) for name, part in found.items()}
    return _in_memory(examples, sources, heldout, skipped, shuffle=settings.shuffle, parts=alone)


def read_pair_set(plan: ModelPlan, settings: PairSettings) -> TrainingRows:
    """Return preference pairs as tokens; raises ``DataError`` for bad rows and for an empty set."""
    train, held = separate(parse_sources(settings.train))
    skipped = SkippedRows()
    renderer = Renderer(plan.tokenizer, settings, plan.end_ids)

    def pairs(selections: Sequence[Selection]) -> Iterator[Pair]:
        return read_pairs(selections, renderer, settings, skipped)

    heldout = {str(item): list(pairs([item])) for item in held}
    if settings.streaming:
        return _streamed(partial(pairs, train), _buffer(settings), train, heldout, skipped, both)
    found = {str(item): list(pairs([item])) for item in train}
    rows = [pair for part in found.values() for pair in part]
    sources = {name: len(part) for name, part in found.items()}
    return _in_memory(rows, sources, heldout, skipped, shuffle=settings.shuffle, parts=both)


def read_texts(plan: ModelPlan, settings: TextSettings) -> TrainingRows:
    """Return texts as a stream of sequences; held-out splits are cut the same way, all of them kept."""
    train, held = separate(parse_sources(settings.train))
    skipped = SkippedRows()
    cut = partial(text_sequences, plan.tokenizer, plan.config.eos_id, settings=settings, skipped=skipped)
    heldout = {str(item): list(cut(selections=[item])) for item in held}
    return _streamed(partial(cut, selections=train), settings.shuffle_buffer, train, heldout, skipped, alone)


def _buffer(settings: DataSettings) -> int:
    """Return the rows that a stream is shuffled through; none leaves its order."""
    return settings.shuffle_buffer if settings.shuffle else 0


def assumed_rows(settings: Any) -> TrainingRows:
    """Return what a run is planned with when its rows cannot be read here: each as long as it may be, all of it answer.

    Nothing of them is known, so nothing can be trained on.
    """
    length = int(getattr(settings, "max_length", 0) or getattr(settings, "sequence_length", 0) or 1)
    length *= 2 if isinstance(settings, PairSettings) else 1
    record = {"sources": [str(item) for item in parse_sources(settings.train)], "assumed": True}
    return TrainingRows(
        supply=lambda seed: Memory((), seed, shuffle=False),
        kept=(),
        heldout=(),
        record=record,
        row_tokens=float(length),
        answer_tokens=float(length),
    )


def look_at_rows(settings: Any) -> None:
    """Read the first row of each local source as text; raises ``DataError`` for a file or a field that is missing."""
    for item in parse_sources(settings.train):
        rows: Iterator[Any] = iter(())
        if item.local and isinstance(settings, PairSettings):
            rows = pair_rows(item, settings, SkippedRows())
        elif item.local and isinstance(settings, DataSettings):
            rows = read_rows(item, settings, SkippedRows())
        next(rows, None)


def alone(example: Example) -> list[Example]:
    """Return the one example of a supervised row."""
    return [example]


def both(pair: Pair) -> list[Example]:
    """Return the two examples of a pair."""
    return [pair.chosen, pair.rejected]


def skipped_text(record: Mapping[str, Any]) -> str:
    """Return how many rows were left out and why, as one line; empty when none was."""
    reasons: Mapping[str, int] = record.get("skipped") or {}
    counts = "; ".join(f"{count:,} x {reason}" for reason, count in reasons.items())
    return f"left out {sum(reasons.values()):,} rows: {counts}" if reasons else ""


def _in_memory(
    rows: Sequence[T],
    sources: Mapping[str, int],
    heldout: Mapping[str, Sequence[T]],
    skipped: SkippedRows,
    *,
    shuffle: bool,
    parts: Callable[[T], list[Example]],
) -> TrainingRows:
    if not rows:
        seen = f"{', '.join(sources)}: {skipped.reasons}"
        raise DataError("the training set is empty", seen=seen, allowed="at least one row")
    examples = [example for row in rows for example in parts(row)]
    answers = sum(example.answer_length for example in examples)
    record = {
        "sources": dict(sources),
        "held_out": {name: len(part) for name, part in heldout.items()},
        "skipped": skipped.reasons,
        "content_hash": content_hash(examples),
        "answer_tokens": answers,
    }
    return TrainingRows(
        supply=lambda seed: Memory(rows, seed, shuffle=shuffle),
        kept=rows,
        heldout=[row for part in heldout.values() for row in part],
        record=record,
        row_tokens=sum(len(example.ids) for example in examples) / len(rows),
        answer_tokens=answers / len(rows),
    )


def _streamed(
    open_rows: Callable[[], Iterator[T]],
    buffer: int,
    selections: Sequence[Selection],
    heldout: Mapping[str, Sequence[T]],
    skipped: SkippedRows,
    parts: Callable[[T], list[Example]],
) -> TrainingRows:
    names, first = [str(item) for item in selections], list(islice(open_rows(), SAMPLE_ROWS))
    if not first:
        seen = f"{', '.join(names)}: {skipped.reasons}"
        raise DataError("the training stream is empty", seen=seen, allowed="at least one row")
    examples = [example for row in first for example in parts(row)]
    record = {
        "sources": names,
        "held_out": {name: len(part) for name, part in heldout.items()},
        "streaming": True,
        "skipped": skipped.reasons,  # the dictionary itself: it counts on while the stream is read
        "first_rows_hash": content_hash(examples),
    }
    return TrainingRows(
        supply=lambda seed: Stream(open_rows, seed, buffer=buffer),
        kept=(),
        heldout=[row for part in heldout.values() for row in part],
        record=record,
        row_tokens=sum(len(example.ids) for example in examples) / len(first),
        answer_tokens=sum(example.answer_length for example in examples) / len(first),
    )


def content_hash(examples: Sequence[Example]) -> str:
    """Return the SHA-256 over the token ids of all rows, in order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example.prompt_length}:{','.join(map(str, example.ids))}\n".encode())
    return digest.hexdigest()
