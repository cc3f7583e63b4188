"""Native diffusion language models: one transformer with switches, one small file per family, no remote code.

    >>> from dare_eval.networks import load_network
    >>> network = load_network("tiny-sudoku")                      # doctest: +SKIP
    >>> logits_BTV = network(ids_BT)                               # doctest: +SKIP

Names are imported when they are first used: reading a config or naming a family does not load torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dare_eval.networks.attention import AttentionMask
    from dare_eval.networks.cache import KVCache
    from dare_eval.networks.config import NetworkConfig, make_config, read_config
    from dare_eval.networks.loading import build_network, load_network
    from dare_eval.networks.network import DiffusionNetwork
    from dare_eval.networks.paths import resolve_model_path
    from dare_eval.networks.saving import save_network

_PLACES = {
    "AttentionMask": "attention",
    "DiffusionNetwork": "network",
    "KVCache": "cache",
    "NetworkConfig": "config",
    "build_network": "loading",
    "load_network": "loading",
    "make_config": "config",
    "read_config": "config",
    "resolve_model_path": "paths",
    "save_network": "saving",
}

__all__ = [
    "AttentionMask",
    "DiffusionNetwork",
    "KVCache",
    "NetworkConfig",
    "build_network",
    "load_network",
    "make_config",
    "read_config",
    "resolve_model_path",
    "save_network",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _PLACES:
        raise AttributeError(f"module 'dare_eval.networks' has no attribute '{name}'")
    return getattr(importlib.import_module(f"dare_eval.networks.{_PLACES[name]}"), name)
