"""Calibrates a plan: three items decoded for real, at a short, a middle and a long prompt.

What they show is three items' worth: forwards vary between items, and a batch of three is slower per row than the
run's own batches. So the range stays wide, and says that it was measured.
"""

from __future__ import annotations

import statistics
from typing import Any

from dare_eval.commands.plan_rows import PlanRow
from dare_eval.report.plan_cost import Range

ITEMS = 3
FASTER_BATCH, SLOWER = 0.4, 1.3
"""How much less a row costs in a larger batch, at best; and how far a run may fall behind its first items."""


def probe(row: PlanRow, model: Any, prompts: list[Any], rows: list[Any], batch: int) -> None:
    """Decode ``prompts`` and put measured forwards and hours into ``row``; does nothing for likelihood tasks."""
    if row.items is None or row.gen_length is None or not prompts:
        return
    texts = model.generate_from_template(prompts, max_out_len=None, rows=rows)
    nfe = [float(text.stats["nfe"]) for text in texts]
    seconds = statistics.fmean(float(text.stats["wall_s"]) for text in texts)
    mean = statistics.fmean(nfe)
    least = FASTER_BATCH if batch > len(prompts) else 1 / SLOWER
    low, high = least * min(nfe) / mean, SLOWER * max(nfe) / mean
    row.nfe = Range(min(nfe), max(nfe))
    row.hours = Range(row.items * seconds * low / 3600, row.items * seconds * high / 3600)
    row.notes.append(f"measured on {len(prompts)} items: {seconds:.3g} s per item, {mean:.1f} forwards")


def probe_prompts(dataset_cfg: Any) -> tuple[list[Any], list[Any]]:
    """Return the prompts and items to decode: at one tenth, half and nine tenths of the prompts by length."""
    from dare_eval.runtime.prompt_sample import sampled_prompts

    found = sorted(sampled_prompts(dataset_cfg), key=lambda pair: len(str(pair[1])))
    places = sorted({int(share * (len(found) - 1)) for share in (0.1, 0.5, 0.9)})
    return [found[place][1] for place in places], [found[place][0] for place in places]
