"""Sizes of published checkpoints without their files (``sizes.yaml``), for planning a run before a download."""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError

if TYPE_CHECKING:
    from dare_eval.networks import NetworkConfig


@functools.cache
def sizes() -> dict[str, dict[str, Any]]:
    """Return the content of each config.json by hub id, ``like`` resolved."""
    import yaml

    text = resources.files(__package__).joinpath("sizes.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return {name: loaded[entry["like"]] if "like" in entry else entry for name, entry in loaded.items()}


def published_config(hub_id: str) -> NetworkConfig:
    """Return the network config of a published checkpoint; raises ``DataError`` for one whose sizes are not known."""
    from dare_eval.networks import make_config

    if hub_id not in sizes():
        raise DataError(
            "neither the checkpoint nor its sizes are known here",
            seen=hub_id,
            allowed="a checkpoint on this machine, or one of: " + ", ".join(sizes()),
            remedy="set DARE_MODEL_<NAME> to a folder with its config.json and tokenizer files",
        )
    return make_config(sizes()[hub_id])
