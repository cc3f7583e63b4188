"""When did the answer form? Answer stability from step maps, and from recorded x0 predictions where they were kept.

A step map says which forward revealed each token, so the response after any forward can be read and scored again;
with x0 records (``record_x0`` in the model config) the model's whole guess is known at every forward instead. Pure:
tokens become text, and text a verdict, through the two functions given. Forwards are counted from 0.

Legend: G response positions; -1 is a position that holds no token yet.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dare_eval.records.intervals import Interval, bootstrap, wilson
from dare_eval.records.items import ItemRecord
from dare_eval.records.summary import is_scored

NONE_YET = -1
GAP = "\u2591"
"""Stands for positions without a token, so that no rule reads across them."""
X0, STEP_MAP = "x0", "step map"
X0_KEY = "x0"
"""Key of ``ItemRecord.extra``: ``[forward, [[position, token], ...]]`` per pass, changes against the pass before."""


class Answer(NamedTuple):
    """The answer as it could be read after one forward."""

    extracted: str | None
    correct: bool


Read = Callable[[Sequence[int]], str]
"""Token ids without gaps to text."""
Judge = Callable[[str, ItemRecord], Answer]
"""Response text to the answer found in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStability:
    """One item; None where the answer cannot be read forward by forward."""

    item_id: str
    question_id: str
    nfe: int
    last_change: int | None
    """Forward after which the answer never changed again."""
    first_right: int | None
    """First forward after which the answer was right; None also when it never was."""
    right: bool
    """The final verdict."""
    left_to_right: float | None
    """Share of position pairs, revealed by different forwards, that were revealed left before right."""

    @property
    def spent_after(self) -> int | None:
        """Forwards spent after the answer was final."""
        return None if self.last_change is None else self.nfe - 1 - self.last_change

    @property
    def lost(self) -> bool | None:
        """Whether the answer was right at some forward and is wrong in the end."""
        return None if self.last_change is None else self.first_right is not None and not self.right


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """One model on one benchmark; intervals are 95 %, over items (flip rate: over questions)."""

    model: str
    dataset: str
    source: str
    """``x0`` or ``step map``."""
    n: int
    """Items with a step map or x0 record."""
    unread: int
    """Of those, items whose final response does not give the recorded answer when read again; left out below."""
    last_change: Interval | None
    """Forward at which the answer last changed, mean."""
    spent_after: Interval | None
    """Forwards after it, mean."""
    exit_share: Interval | None
    """Oracle early exit: share of an item's forwards needed until its answer was final, mean."""
    oracle_right: Interval | None
    """Share of items right at some forward: what stopping at the best moment would score."""
    lost: Interval | None
    """Share of items that were right at some forward and are wrong in the end."""
    left_to_right: Interval | None
    flip_rate: Interval | None
    """Share of answer pairs to one question, under different seeds, whose verdicts differ; None without repeats."""
    items: tuple[ItemStability, ...]


def stability(
    model: str,
    dataset: str,
    records: Sequence[ItemRecord],
    read: Read | None,
    judge: Judge | None,
    others: Sequence[ItemRecord] = (),
) -> Stability:
    """Return the stability of the scored ``records``; without ``read`` or ``judge`` only what needs no answer.

    ``others`` are answers of the same model and settings under other seeds; they count for the flip rate alone.
    """
    traced = [one for one in records if is_scored(one) and one.nfe and (one.step_map or X0_KEY in one.extra)]
    items = [item_stability(one, read, judge) for one in traced]
    known = [one for one in items if one.last_change is not None]
    return Stability(
        model=model,
        dataset=dataset,
        source=X0 if any(X0_KEY in one.extra for one in traced) else STEP_MAP,
        n=len(items),
        unread=len(items) - len(known),
        last_change=_mean([one.last_change or 0 for one in known]),
        spent_after=_mean([one.spent_after or 0 for one in known]),
        exit_share=_mean([((one.last_change or 0) + 1) / one.nfe for one in known]),
        oracle_right=_share([one.first_right is not None for one in known]),
        lost=_share([bool(one.lost) for one in known]),
        left_to_right=_mean([one.left_to_right for one in items if one.left_to_right is not None]),
        flip_rate=flip_rate([*records, *others]),
        items=tuple(items),
    )


def item_stability(record: ItemRecord, read: Read | None, judge: Judge | None) -> ItemStability:
    """Return when the answer of one record formed."""
    last = first = None
    if read is not None and judge is not None:
        answers = answers_by_forward(record, read, judge)
        if answers and answers[-1] == Answer(record.extracted, bool(record.correct)):
            last = _last_change(answers)
            first = next((step for step, answer in enumerate(answers) if answer.correct), None)
    return ItemStability(
        item_id=record.item_id,
        question_id=record.question_id,
        nfe=record.nfe or 0,
        last_change=last,
        first_right=first,
        right=bool(record.correct),
        left_to_right=left_to_rightness(record.step_map, len(record.tokens or ())),
    )


def answers_by_forward(record: ItemRecord, read: Read, judge: Judge) -> list[Answer]:
    """Return the answer after each forward; the last one is that of the whole response."""
    known: dict[str, Answer] = {}
    answers: list[Answer] = []
    for tokens_G in states(record):
        text = text_of(tokens_G, read)
        if text not in known:
            known[text] = judge(text, record)
        answers.append(known[text])
    if answers:  # the response as it was scored, whatever cleaned it (stop texts)
        answers[-1] = judge(record.response, record)
    return answers


def states(record: ItemRecord) -> Iterator[list[int]]:
    """Yield the response after each forward, [G]: the model's whole guess with x0 records, else what is committed."""
    if X0_KEY in record.extra:
        yield from _x0_states(record)
        return
    tokens, steps = list(record.tokens or ()), list(record.step_map or ())
    edits = sorted((list(edit) for edit in record.edits or ()), key=lambda edit: edit[0])
    written = list(tokens)
    for _, position, old, _ in reversed(edits):  # what stood there before the first edit
        if position < len(written):
            written[position] = old
    for forward in range(record.nfe or 0):
        for step, position, _, new in edits:
            if step == forward and position < len(written):
                written[position] = new
        shown = [place < len(steps) and 0 <= steps[place] <= forward for place in range(len(written))]
        yield [token if known else NONE_YET for token, known in zip(written, shown, strict=True)]


def _x0_states(record: ItemRecord) -> Iterator[list[int]]:
    changes = {int(forward): pairs for forward, pairs in record.extra[X0_KEY]}
    state: dict[int, int] = {}
    for forward in range(record.nfe or 0):
        for position, token in changes.get(forward, ()):
            state[int(position)] = int(token)
        length = max((place for place, token in state.items() if token != NONE_YET), default=-1) + 1
        yield [state.get(place, NONE_YET) for place in range(length)]


def text_of(tokens_G: Sequence[int], read: Read) -> str:
    """Return the text of a response with gaps; each gap becomes one :data:`GAP`."""
    parts: list[str] = []
    run: list[int] = []
    for token in [*tokens_G, NONE_YET]:
        if token != NONE_YET:
            run.append(token)
            continue
        if run:
            parts.append(read(run))
            run = []
        if not parts or parts[-1] != GAP:
            parts.append(GAP)
    return " ".join(parts[:-1]) if parts[-1:] == [GAP] else " ".join(parts)


def left_to_rightness(step_map: Sequence[int] | None, length: int) -> float | None:
    """Return the share of position pairs, revealed by different forwards, that were revealed left before right.

    1 is strictly left to right, 0.5 any order, 0 right to left; None when all positions came at once. Looks at the
    first ``length`` positions (the response without padding). From Kendall's tau-b, whose ties are in the forwards.
    """
    from scipy.stats import kendalltau

    steps = [step for step in (step_map or ())[:length] if step >= 0]
    counts: dict[int, int] = {}
    for step in steps:
        counts[step] = counts.get(step, 0) + 1
    pairs = math.comb(len(steps), 2)
    untied = pairs - sum(math.comb(count, 2) for count in counts.values())
    if untied == 0:
        return None
    tau = float(kendalltau(range(len(steps)), steps).statistic)
    return (1 + tau * math.sqrt(pairs * untied) / untied) / 2


def flip_rate(records: Sequence[ItemRecord]) -> Interval | None:
    """Return how often two answers to one question differ in their verdict, over questions with several answers."""
    groups: dict[str, list[bool]] = {}
    for record in sorted(records, key=lambda one: (one.question_id, one.repeat)):
        if is_scored(record):
            groups.setdefault(record.question_id, []).append(bool(record.correct))
    return flips_of(groups)


def flips_of(groups: Mapping[str, Sequence[bool]]) -> Interval | None:
    """Return the share of verdict pairs that differ, averaged over groups of at least two; bootstrap over groups."""
    rates = []
    for verdicts in groups.values():
        right, n = sum(verdicts), len(verdicts)
        if n > 1:
            rates.append(right * (n - right) / math.comb(n, 2))
    if not rates:
        return None
    if not any(rates):  # nothing flipped: count the groups, a bootstrap would claim certainty
        return wilson(0, len(rates))
    return bootstrap(rates)


def to_record(found: Stability) -> dict[str, Any]:
    """Return the stability as JSON-ready values."""
    return dataclasses.asdict(found)


def _last_change(answers: Sequence[Answer]) -> int:
    last = len(answers) - 1
    while last > 0 and answers[last - 1] == answers[-1]:
        last -= 1
    return last


def _mean(values: Sequence[float]) -> Interval | None:
    return bootstrap(values) if len(values) > 1 else None  # one value says nothing about its spread


def _share(flags: Sequence[bool]) -> Interval | None:
    return wilson(sum(flags), len(flags)) if flags else None
