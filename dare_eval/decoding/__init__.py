"""Decoding and likelihood of diffusion language models: one loop of six parts, shared by evaluation and training.

    >>> from dare_eval.decoding import decode                       # doctest: +SKIP
    >>> results = decode(network, [[1, 5, 9]], spec)                # doctest: +SKIP

Parts: denoiser (network, shift, guidance), cache policy, block schedule, value sampler, transfer policy with
editing, recorder. docs/decoding.md explains each field of the spec. Names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dare_eval.decoding.likelihood import ElboResult, LikelihoodOptions, elbo, warn_generation_only
    from dare_eval.decoding.loop import decode
    from dare_eval.decoding.policies.base import Policy
    from dare_eval.decoding.results import DecodeResult, Edit, RecordOptions, Reveal, Trace
    from dare_eval.decoding.step import Step

_PLACES = {
    "DecodeResult": "results",
    "Edit": "results",
    "ElboResult": "likelihood",
    "LikelihoodOptions": "likelihood",
    "Policy": "policies.base",
    "RecordOptions": "results",
    "Reveal": "results",
    "Step": "step",
    "Trace": "results",
    "decode": "loop",
    "elbo": "likelihood",
    "warn_generation_only": "likelihood",
}

__all__ = [
    "DecodeResult",
    "Edit",
    "ElboResult",
    "LikelihoodOptions",
    "Policy",
    "RecordOptions",
    "Reveal",
    "Step",
    "Trace",
    "decode",
    "elbo",
    "warn_generation_only",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _PLACES:
        raise AttributeError(f"module 'dare_eval.decoding' has no attribute '{name}'")
    return getattr(importlib.import_module(f"dare_eval.decoding.{_PLACES[name]}"), name)
