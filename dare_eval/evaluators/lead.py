"""What stands beside a score by likelihood: how many choices may be noise of the estimate."""

from __future__ import annotations

from collections.abc import Sequence

from dare_eval.records.items import ItemRecord

DOUBTFUL = 2.0
"""Standard errors below which a lead may be Monte-Carlo noise."""


def lead_labels(records: Sequence[ItemRecord]) -> list[str]:
    """Return what says how many choices lead by less than the noise; nothing where nothing was drawn."""
    found = [record.extra.get("likelihood") or {} for record in records]
    leads = [(one["margin"], one["margin_stderr"]) for one in found if one.get("margin_stderr") is not None]
    if not any(stderr for _, stderr in leads):
        return []
    doubtful = sum(margin < DOUBTFUL * stderr for margin, stderr in leads)
    return [f"choices within {DOUBTFUL:g} Monte-Carlo errors: {doubtful} of {len(leads)}"]
