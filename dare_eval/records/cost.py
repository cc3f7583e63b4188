"""What decoding cost, with one definition of each number (docs/results.md gives them in words).

Generated tokens: response tokens before the first EOS; prompt, EOS and padding never count. NFE: batched forwards
of the denoiser per item (a guidance step with a doubled batch is one). Tokens per forward and tokens per second are
ratios of sums over items, so long items weigh as much as they cost.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

from dare_eval.records.items import ItemRecord

CUT = "length"
"""Value of ``ItemRecord.stop`` for a response that the length limit cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost over the items that were measured; None where none was."""

    nfe: float | None
    """Forwards per item, mean."""
    tokens_per_forward: float | None
    tokens_per_second: float | None
    wall_s: float | None
    """Seconds of decoding per item, mean."""
    truncated: float | None
    """Share of items cut by the length limit."""
    eos_share: float | None
    """Share of the canvas behind the first EOS."""


def generated_tokens(output_ids: Sequence[Hashable], eos_ids: Collection[Hashable]) -> int:
    """Return the number of ids before the first one in ``eos_ids``; ``output_ids`` holds no prompt."""
    return next((position for position, token in enumerate(output_ids) if token in eos_ids), len(output_ids))


def cost_of(records: Iterable[ItemRecord], *, gen_length: int | None = None) -> Cost:
    """Return the cost of ``records``; ``gen_length`` (tokens of the canvas) is needed for the EOS share."""
    items = list(records)
    lengths = [record.generated_tokens for record in items if record.generated_tokens is not None]
    stops = [record.stop for record in items if record.stop is not None]
    return Cost(
        nfe=_mean([record.nfe for record in items if record.nfe is not None]),
        tokens_per_forward=_ratio((record.generated_tokens, record.nfe) for record in items),
        tokens_per_second=_ratio((record.generated_tokens, record.wall_s) for record in items),
        wall_s=_mean([record.wall_s for record in items if record.wall_s is not None]),
        truncated=_mean([stop == CUT for stop in stops]),
        eos_share=max(0.0, 1.0 - sum(lengths) / (gen_length * len(lengths))) if gen_length and lengths else None,
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ratio(pairs: Iterable[tuple[float | None, float | None]]) -> float | None:
    known = [(top, bottom) for top, bottom in pairs if top is not None and bottom is not None]
    below = sum(bottom for _, bottom in known)
    return sum(top for top, _ in known) / below if below > 0 else None
