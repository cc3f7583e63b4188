"""Dream-v0-7B: bidirectional attention with logits shifted by one position."""

from __future__ import annotations

from dare_eval.models.base import DiffusionModel


class DreamModel(DiffusionModel):
    """Dream in chat form (Dream-v0-Instruct-7B)."""

    family = "dream"


class DreamBaseModel(DreamModel):
    """Dream as a base model: the prompt is one text without chat turns."""

    chat = False
