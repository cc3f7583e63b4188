"""LLaDA-8B, LLaDA-1.5 and LLaDA-MoE: bidirectional attention, no shift, blocks are a setting of decoding."""

from __future__ import annotations

from dare_eval.models.base import DiffusionModel


class LLaDAModel(DiffusionModel):
    """LLaDA in chat form (Instruct, 1.5, MoE-Instruct and the packaged tiny models)."""

    family = "llada"
    families = ("llada_moe",)


class LLaDABaseModel(LLaDAModel):
    """LLaDA as a base model: the prompt is one text without chat turns."""

    chat = False
