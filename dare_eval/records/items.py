"""Item records: one evaluated item each, the truth that every average, interval and board is recomputed from.

A record file is JSON lines beside the OpenCompass predictions, ``records/<model>/<dataset>.jsonl``. Lines are only
appended. When an item stands there twice (scored after decoding, or run again) the later line counts. Leaves out
which items belong to a data set (the manifest's ``expected``) and every statistic (``records.stats``).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dare_eval.errors import DataError
from dare_eval.records.shapes import FLAG, NUMBER, NUMBERS, OBJECT, TEXT, WHOLE, Rules, check_shape

RECORD_VERSION = 1

_TUPLES = ("tokens", "nfe_by_block", "step_map")
_DECODE_FIELDS = ("tokens", "nfe", "nfe_by_block", "generated_tokens", "wall_s", "step_map", "edits", "stop")
_SCORE_FIELDS = ("correct", "value", "extracted", "rule", "detail")
_TYPES: Rules = (
    (("item_id", "question_id", "prompt_sha", "prompt", "response", "extracted", "rule", "stop", "error"), TEXT),
    (("correct", "unrecorded", "upstream_correct"), FLAG),
    (("index", "repeat", "nfe", "generated_tokens"), WHOLE),
    (("value", "wall_s"), NUMBER),
    (("tokens", "nfe_by_block", "step_map"), NUMBERS),
    (("detail",), OBJECT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRecord:
    """One item of one data set, answered once by one model; see the field notes for units."""

    item_id: str
    """SHA-256 of data set, split, content and repeat (:func:`item_id`); the key that pairs two runs."""
    question_id: str = ""
    """The same hash without the repeat; equal for all repeats of one question. Empty means ``item_id``."""
    index: int = -1
    """Position in the data set, for people and for upstream's prediction files; -1 where unknown."""
    repeat: int = 0
    """Which of several answers to the same question this is, counted from 0."""
    prompt_sha: str = ""
    """SHA-256 of the prompt as the model received it."""
    prompt: str = ""
    """The prompt as the model received it."""
    response: str = ""
    """The response, special tokens removed."""
    extracted: str | None = None
    """The answer found in the response; None when no rule found one."""
    rule: str = ""
    """Name of the extraction rule that fired."""
    correct: bool | None = None
    """Verdict of our scorer; None before scoring."""
    value: float | None = None
    """Graded credit in [0, 1]; None before scoring."""
    reference: Any = None
    """The reference answer (any JSON value)."""
    detail: dict[str, Any] = field(default_factory=dict)
    """What the scorer wants kept, such as a malformed grid or a failed test."""
    tokens: tuple[int, ...] | None = None
    """Token ids of the response, prompt stripped."""
    nfe: int | None = None
    """Batched forwards of the denoiser spent on this row."""
    nfe_by_block: tuple[int, ...] | None = None
    """``nfe`` split by block."""
    generated_tokens: int | None = None
    """Response tokens, the first EOS and all after it excluded."""
    wall_s: float | None = None
    """Seconds of decoding: the batch's wall time divided by its rows."""
    step_map: tuple[int, ...] | None = None
    """Per position the 0-based forward that revealed it; -1 never."""
    edits: Any = None
    """Revisions of committed tokens, as the decoder reports them."""
    stop: str | None = None
    """Why decoding ended; ``length`` means the response was cut."""
    error: str | None = None
    """What failed while this item was answered; it is left out of the score, which is then incomplete."""
    unrecorded: bool = False
    """A replayed model has no answer for this item; it is left out of the score and counted beside it."""
    upstream_correct: bool | None = None
    """Verdict of the stock evaluator, where it ran too."""
    upstream_extracted: str | None = None
    """Answer the stock evaluator extracted."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields of other writers, kept as they came."""

    def __post_init__(self) -> None:
        """Normalise lists to tuples and refuse numbers that JSON cannot hold."""
        for name in _TUPLES:
            found = getattr(self, name)
            if found is not None and not isinstance(found, tuple):
                object.__setattr__(self, name, tuple(found))
        if not self.question_id:
            object.__setattr__(self, "question_id", self.item_id)
        for name in ("value", "wall_s"):
            found = getattr(self, name)
            if found is not None and not math.isfinite(found):
                raise DataError(f"item {self.item_id[:12]}: {name} is not finite", seen=found)

    def with_decode(self, result: Any) -> ItemRecord:
        """Return a copy with the decode fields of a ``DecodeResult`` (fields it lacks stay as they are)."""
        found = {name: getattr(result, name) for name in _DECODE_FIELDS if hasattr(result, name)}
        return dataclasses.replace(self, **found)

    @property
    def disputed(self) -> bool:
        """Whether our scorer and the stock one both judged the item and disagree."""
        judged = self.correct is not None and self.upstream_correct is not None
        return judged and self.correct != self.upstream_correct

    def with_score(self, score: Any) -> ItemRecord:
        """Return a copy with verdict, credit, extraction and rule of a ``Score``."""
        return dataclasses.replace(self, **{name: getattr(score, name) for name in _SCORE_FIELDS})

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON-ready values, its version first; fields at their default are left out."""
        record: dict[str, Any] = {**self.extra, "version": RECORD_VERSION}
        defaults = {"question_id": self.item_id, "detail": {}, "extra": self.extra}
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if value != defaults.get(spec.name, spec.default):
                record[spec.name] = list(value) if isinstance(value, tuple) else value
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ItemRecord:
        """Return the record that :meth:`to_dict` stored; raises ``DataError`` for another version or a wrong type."""
        version = record.get("version")
        if version != RECORD_VERSION:
            raise DataError("item record of an unknown version", seen=version, allowed=str(RECORD_VERSION))
        check_shape(record, _TYPES, "item record", needed=("item_id",))
        own = {key: value for key, value in record.items() if key in _KNOWN and value is not None}
        extra = {key: value for key, value in record.items() if key not in _KNOWN and key != "version"}
        return cls(**own, extra=extra)


_KNOWN = frozenset(spec.name for spec in dataclasses.fields(ItemRecord)) - {"extra"}


def item_id(dataset: str, split: str, content: Any, repeat: int = 0) -> str:
    """Return the SHA-256 that names an item: data set, split and content, and the repeat when it is not the first.

    ``content`` is the row as the data set gives it (a mapping or a text); key order does not matter. Repeat 0 has
    the id of the question itself, so a run with one answer pairs with the first answer of a run with several.
    """
    parts: list[Any] = [dataset, split, content] + ([repeat] if repeat else [])
    return sha256_text(json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str))


def sha256_text(text: str) -> str:
    """Return the SHA-256 of ``text``, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
