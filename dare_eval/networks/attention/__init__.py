"""Attention: one rule of who may look at whom (``masks``) and the kernels that apply it."""

from dare_eval.networks.attention.masks import AttentionMask
from dare_eval.networks.attention.plan import BACKENDS, plan_attention

__all__ = ["BACKENDS", "AttentionMask", "plan_attention"]
