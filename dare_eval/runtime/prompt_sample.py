"""Prompts of a data set as a run would make them, a few of them: the longest rows and some evenly spread.

Upstream's retriever and templates make them; nothing is decoded.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from opencompass.registry import ICL_PROMPT_TEMPLATES, ICL_RETRIEVERS

from dare_eval.inferencers.rows import Row
from dare_eval.runtime.built import build, rows_of

SPREAD, LONGEST = 96, 16


def sampled_prompts(dataset_cfg: Any) -> Iterator[tuple[Row, Any]]:
    """Yield item and prompt (in OpenCompass' form, before the model's template) of the chosen rows, in order."""
    dataset = build(dataset_cfg)
    infer_cfg = copy.deepcopy(dataset_cfg["infer_cfg"])
    examples, asked = (
        ICL_PROMPT_TEMPLATES.build(infer_cfg[name]) if name in infer_cfg else None
        for name in ("ice_template", "prompt_template")
    )
    retriever = ICL_RETRIEVERS.build({**infer_cfg["retriever"], "dataset": dataset})
    found, rows = retriever.retrieve(), rows_of(dataset_cfg)
    for index in chosen_rows([_length(row) for row in dataset.test]):
        shots = retriever.generate_ice(found[index], ice_template=examples)
        prompt = retriever.generate_prompt_for_generate_task(
            index, shots, gen_field_replace_token="", ice_template=examples, prompt_template=asked
        )
        yield rows[index], prompt


def chosen_rows(lengths: list[int]) -> list[int]:
    """Return which rows are looked at: all of a small set, else some evenly spread and the longest ones."""
    if len(lengths) <= SPREAD + LONGEST:
        return list(range(len(lengths)))
    spread = {number * len(lengths) // SPREAD for number in range(SPREAD)}
    longest = sorted(range(len(lengths)), key=lambda index: -lengths[index])[:LONGEST]
    return sorted(spread | set(longest))


def _length(row: Any) -> int:
    return sum(len(str(value)) for value in row.values())
