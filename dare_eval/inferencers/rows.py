"""Items of a data set as the inferencer and the models see them: identity, position, repeat and the row itself.

The id of an item depends on data set, split, content and repeat only, so two runs with other prompts, decoders or
checkpoints pair item by item. Leaves out prompts: they are made by OpenCompass' templates.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dare_eval.records.items import item_id

ADDED_COLUMNS = frozenset({"subdivision", "idx"})
"""Columns that OpenCompass adds to every data set; they depend on the abbr, not on the content."""


@dataclass(frozen=True, slots=True)
class Row:
    """One item to be answered once."""

    item_id: str
    """Hash of data set, split, content and repeat (``records.items.item_id``)."""
    question_id: str
    """The same hash without the repeat."""
    index: int
    """Position in the data set, repeats included."""
    repeat: int
    """Which answer to the same question this is, from 0."""
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The row's own columns."""


def content_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row without the columns that OpenCompass adds."""
    return {key: value for key, value in row.items() if key not in ADDED_COLUMNS}


def make_rows(
    dataset: Iterable[Mapping[str, Any]],
    name: str,
    split: str = "test",
    questions: int | None = None,
    identity: Sequence[str] | None = None,
) -> list[Row]:
    """Return one :class:`Row` per row of the whole ``dataset``.

    ``questions`` is the number of different questions when the data set holds each several times one after the
    other (OpenCompass' ``n``): row ``i`` is repeat ``i // questions``. ``identity`` names the columns that make the
    id (None: all), so that prompt variants of one data set share ids. Equal rows within one repeat get different ids
    by their order, so none is lost.
    """
    rows: list[Row] = []
    seen: Counter[tuple[str, int]] = Counter()
    for position, raw in enumerate(dataset):
        content = content_of(raw)
        repeat = position // questions if questions else 0
        identified = content if identity is None else {key: content[key] for key in identity}
        question = item_id(name, split, identified)
        copies = seen[question, repeat]
        seen[question, repeat] += 1
        named: Any = [identified, copies] if copies else identified
        question = item_id(name, split, named)
        rows.append(Row(item_id(name, split, named, repeat), question, position, repeat, content))
    return rows


def content_digest(rows: Sequence[Row]) -> str:
    """Return the SHA-256 over the ids of all rows in order: the content hash of a data set as it is evaluated."""
    return hashlib.sha256("\n".join(row.item_id for row in rows).encode()).hexdigest()


def rows_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the SHA-256 over the content of ``rows`` (used for the split that few-shot examples come from)."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(content_of(row), sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
