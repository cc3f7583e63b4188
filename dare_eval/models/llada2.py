"""LLaDA2.0 and LLaDA2.1 (mini, flash): block-causal mixture of experts; 2.1 also edits committed tokens."""

from __future__ import annotations

from dare_eval.models.base import DiffusionModel


class LLaDA2Model(DiffusionModel):
    """LLaDA2.x in chat form."""

    family = "llada2"


class LLaDA2BaseModel(LLaDA2Model):
    """LLaDA2.x as a base model: the prompt is one text without chat turns."""

    chat = False
