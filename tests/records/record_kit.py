"""Item records made up for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dare_eval.records.items import ItemRecord, item_id

SPEC = {"family": "llada", "gen_length": 16, "block_length": 8, "steps": 8, "policy": "quota", "seed": 0}


def records(verdicts: Sequence[bool], *, dataset: str = "toy", **fields: Any) -> list[ItemRecord]:
    """Return one scored record per verdict, with costs; ``fields`` override."""
    found = []
    for number, right in enumerate(verdicts):
        base = {"index": number, "correct": right, "value": float(right), "extracted": str(number), "reference": number}
        base |= {"nfe": 4, "generated_tokens": 8, "wall_s": 0.5, "stop": "eos", "prompt_sha": f"p{number}"}
        found.append(ItemRecord(item_id=item_id(dataset, "test", number), **(base | fields)))
    return found
