"""SDAR 1.7B to 30B-A3B: block-causal attention; the block length is part of the checkpoint."""

from __future__ import annotations

from dare_eval.models.base import DiffusionModel


class SDARModel(DiffusionModel):
    """SDAR in chat form, dense and mixture-of-experts."""

    family = "sdar"
    families = ("sdar_moe",)


class SDARBaseModel(SDARModel):
    """SDAR as a base model: the prompt is one text without chat turns."""

    chat = False
