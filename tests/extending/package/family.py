"""A model family: Qwen-shaped keys, bidirectional attention, no shift; decoded like LLaDA."""

from __future__ import annotations

from dare_eval.networks.families.base import Family, qwen_fields

FAMILY = Family(
    name="spiral",
    model_types=("spiral",),
    architectures=("SpiralForMaskedLM",),
    parse=lambda raw: qwen_fields(raw) | {"qk_norm": True},
    token_ids={"mask": 60, "pad": 61, "eos": 61},
)
