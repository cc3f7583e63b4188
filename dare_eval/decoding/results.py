"""What a decoding run returns per row, and what it may keep along the way.

Costs are counted per row as if the row had been decoded alone: a forward counts for the rows that took part in it.

Legend: S recorded passes, G response columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class Edit(NamedTuple):
    """A committed token that was replaced (LLaDA2.1)."""

    step: int
    """0-based forward of the row."""
    position: int
    """Position in the response."""
    old: int
    new: int


class Reveal(NamedTuple):
    """What one pass wrote into one row, as it happens."""

    row: int
    step: int
    """0-based forward of the row."""
    positions: list[int]
    """Positions in the response."""
    tokens: list[int]
    edited: bool
    """The positions held other tokens before (LLaDA2.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """What to keep of every pass besides the step map; costs memory, not time."""

    steps: Collection[int] | None = None
    """0-based forwards of a row to keep; None keeps all that revealed something, () none."""
    rows: Collection[int] | None = None
    """Rows of the batch whose passes are kept; None keeps all."""
    watch: Callable[[Reveal], None] | None = None
    """Called for every row and pass that wrote something, while decoding goes on (waits for the device each pass)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The recorded passes of one row, in order; positions are those of the response."""

    prompt: list[int]
    """The prompt at the end; only the parity switch ``overwrite_committed`` changes it."""
    steps: list[int]
    """0-based forward of the row, [S]."""
    state_SG: Tensor
    """Response before the pass, masks included."""
    proposal_SG: Tensor
    """x0 prediction where the pass computed one, else -1."""
    score_SG: Tensor
    """Score of the prediction (probability unless the policy ranks otherwise), NaN where none was computed."""
    committed_SG: Tensor
    """True where the pass revealed the position."""


@dataclass(slots=True, kw_only=True)
class DecodeResult:
    """One decoded row."""

    tokens: list[int]
    """Response trimmed before the first end token (of the checkpoint or the spec), at most gen_length."""
    text: str = ""
    """Filled in by the caller, who has the tokenizer."""
    nfe: int
    """Forwards this row took part in; a guidance step with its doubled batch counts once."""
    nfe_by_block: list[int]
    generated_tokens: int
    """Length of ``tokens``: the first end token and all after it excluded."""
    wall_s: float
    """Wall time of the batch divided by its rows."""
    step_map: list[int]
    """0-based forward that revealed each position of ``response``; -1 never."""
    edits: list[Edit] = field(default_factory=list)
    stop: str
    """``eos``, ``stop_id`` or ``length``."""
    response: list[int]
    """The whole decoded region, untrimmed: with EOS, fill and, after an early stop, masks."""
    trace: Trace | None = None

    @property
    def tokens_per_forward(self) -> float:
        """Generated tokens per forward of this row (TPF)."""
        return self.generated_tokens / self.nfe if self.nfe else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second of decoding (TPS)."""
        return self.generated_tokens / self.wall_s if self.wall_s else 0.0


def trim(response: list[int], eos_id: int, ends: Collection[int], gen_length: int) -> tuple[list[int], str]:
    """Return the response before its first end token, and why it ends: ``eos``, ``stop_id`` or ``length``."""
    cut = response[:gen_length]
    for position, token in enumerate(cut):
        if token == eos_id or token in ends:
            return cut[:position], "eos" if token == eos_id else "stop_id"
    return cut, "length"
