"""LoRA adapters as checkpoints: a folder with adapter_config.json opens like any other, its base underneath.

The adapter's change is added to the base's weights as they are opened, so a merged and an adapted network compute
the same and nothing downstream knows the difference. Files are those of PEFT. Variants that are more than
``W + scale B A`` (DoRA, trained biases, extra trained modules) are refused by name.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError
from dare_eval.networks.paths import resolve_model_path

if TYPE_CHECKING:
    from dare_eval.networks.network import DiffusionNetwork

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
PREFIX = "base_model.model."


def is_adapter(folder: Path) -> bool:
    """Return whether ``folder`` holds an adapter rather than a whole checkpoint."""
    return (folder / CONFIG_FILE).is_file()


def base_folder(folder: Path) -> Path:
    """Return the folder of the checkpoint that the adapter in ``folder`` changes.

    An environment variable that puts this very adapter in its base's place is not followed.
    """
    name = _base_name(folder)
    found = resolve_model_path(name)
    return resolve_model_path(name, redirected=False) if found.resolve() == folder.resolve() else found


def _base_name(folder: Path) -> str:
    name = _read(folder).get("base_model_name_or_path")
    if not name:
        raise DataError(
            "the adapter does not name its base",
            seen=folder / CONFIG_FILE,
            remedy="set base_model_name_or_path in it",
        )
    return str(name)


def merge_adapter(network: DiffusionNetwork, folder: Path) -> None:
    """Add the adapter in ``folder`` to the weights of ``network``; raises ``DataError`` when they do not fit."""
    import torch

    settings = _read(folder)
    tensors = _tensors(folder)
    parameters = dict(network.named_parameters())
    with torch.no_grad():
        for key in sorted(name for name in tensors if name.endswith(".lora_A.weight")):
            module = key.removesuffix(".lora_A.weight")
            down, up = tensors[key], tensors.get(f"{module}.lora_B.weight")
            target = parameters.get(f"{module}.weight")
            if up is None or target is None or target.shape != (up.shape[0], down.shape[1]):
                raise DataError(
                    f"the adapter does not fit its base at '{module}'",
                    seen="no such matrix" if target is None else tuple(target.shape),
                    allowed="the base it was trained on",
                    remedy=f"base_model_name_or_path in {folder / CONFIG_FILE}",
                )
            rank = down.shape[0]
            alpha = float(settings.get("lora_alpha") or rank)
            scale = alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank)
            change = scale * (up.float() @ down.float())
            if not bool(change.isfinite().all()):
                raise DataError(
                    f"the adapter holds numbers that are not finite at '{module}'",
                    seen=folder / WEIGHTS_FILE,
                    allowed="finite numbers",
                    remedy="train it again, or take an earlier checkpoint",
                )
            target.copy_((target.float() + change.to(target.device)).to(target.dtype))


def _tensors(folder: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        found = load_file(folder / WEIGHTS_FILE)
    except (OSError, SafetensorError) as error:
        raise DataError(f"the adapter's weights cannot be read: {error}", seen=folder / WEIGHTS_FILE) from error
    plain = {key.removeprefix(PREFIX).replace(".default.", "."): tensor for key, tensor in found.items()}
    strange = [key for key in plain if not key.endswith((".lora_A.weight", ".lora_B.weight"))]
    if strange or not plain:
        raise DataError(
            "the adapter holds more than low-rank matrices" if strange else "the adapter is empty",
            seen=strange[0] if strange else folder,
            allowed="lora_A and lora_B weights of linear layers",
        )
    return plain


def _read(folder: Path) -> dict[str, Any]:
    from dare_eval.networks.config import read_json

    settings = read_json(folder / CONFIG_FILE)
    kind = settings.get("peft_type")
    if kind != "LORA" or settings.get("use_dora") or settings.get("rank_pattern") or settings.get("alpha_pattern"):
        raise DataError(
            "this kind of adapter is not supported",
            seen=f"peft_type {kind}, use_dora {settings.get('use_dora')}, rank_pattern {settings.get('rank_pattern')}",
            allowed="plain LoRA with one rank",
            remedy="merge it into its base with PEFT and use the merged checkpoint",
        )
    return settings
