"""LoRA through PEFT: small trained matrices beside frozen weights, switched off to give the reference policy.

The layers are injected into the network itself, so ``body`` and ``head`` stay what they are. Initial values come from
an explicit generator. An adapter is saved alone, in PEFT's files, with the base's config.json and the tokenizer
beside it, so that it is evaluated as any checkpoint (``dare_eval.networks.adapters`` merges it while loading).
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dare_eval.errors import SetupError, UsageError
from dare_train.config import LoraSettings

OLDEST_PEFT = (0, 17)
"""PEFT before it does not start with transformers 5; LMDeploy's environment holds such a one."""


def target_pattern(network: Any, targets: str | tuple[str, ...]) -> str:
    """Return the regular expression of the layers' projections that get an adapter; routers and the head do not.

    ``targets`` is 'all-linear' or leaf names; raises ``UsageError`` for a name that no layer has.
    """
    prefix, router = network.config.names.layers, network.config.names.router
    inside = [
        name.removeprefix(f"{prefix}.").partition(".")[2]
        for name, module in network.named_modules()
        if isinstance(module, nn.Linear) and name.startswith(f"{prefix}.") and not name.endswith(f".{router}")
    ]
    known = sorted({path.rpartition(".")[2] for path in inside})
    wanted = known if targets == "all-linear" else list(targets)
    for name in wanted:
        if name not in known:
            raise UsageError("no layer has a projection of that name", seen=name, allowed=", ".join(known))
    return rf"{re.escape(prefix)}\.\d+\.(?:[\w.]+\.)?(?:{'|'.join(map(re.escape, wanted))})"


def add_lora(network: Any, settings: LoraSettings, generator: torch.Generator) -> None:
    """Put trainable adapters into ``network`` and freeze everything else; the network computes what it did before."""
    _check_peft()
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=target_pattern(network, settings.targets),
        bias="none",
    )
    with torch.random.fork_rng(devices=[]):  # PEFT draws from the global generator; the values are replaced below
        inject_adapter_in_model(config, network)
    for name, parameter in network.named_parameters():
        if ".lora_A." in name:
            bound = 1.0 / math.sqrt(parameter.shape[1])
            with torch.no_grad():
                drawn = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
                parameter.copy_(drawn)
        parameter.requires_grad_(".lora_" in name)


def _check_peft() -> None:
    from importlib.metadata import version

    found = version("peft")
    if tuple(map(int, found.split(".")[:2])) < OLDEST_PEFT:
        raise SetupError(
            "adapters need a newer peft",
            seen=f"peft {found}",
            allowed=f">= {'.'.join(map(str, OLDEST_PEFT))}",
            remedy="train adapters outside LMDeploy's environment, or train all weights (leave model.lora out)",
        )


@contextlib.contextmanager
def adapters_off(network: nn.Module) -> Iterator[None]:
    """Run the base alone: the reference policy of an adapted network."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [module for module in network.modules() if isinstance(module, BaseTunerLayer)]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)
            # Enabling marks every adapter parameter as trainable, which is what it was.


def merge_adapters(network: nn.Module) -> None:
    """Add the adapters to the weights under them and put the plain layers back."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, layer in [(n, m) for n, m in network.named_modules() if isinstance(m, BaseTunerLayer)]:
        layer.merge()
        parent, _, leaf = name.rpartition(".")
        setattr(network.get_submodule(parent), leaf, layer.get_base_layer())


def has_adapters(network: nn.Module) -> bool:
    """Return whether ``network`` carries adapters."""
    return any(".lora_" in name for name, _ in network.named_parameters())


def save_adapter(network: Any, folder: Path, settings: LoraSettings, base: str) -> None:
    """Write the adapter alone to ``folder``, with the base's config.json."""
    from safetensors.torch import save_file

    from dare_eval.networks.adapters import CONFIG_FILE, PREFIX, WEIGHTS_FILE

    folder.mkdir(parents=True, exist_ok=True)
    state = {
        PREFIX + name.replace(".default.", "."): tensor.detach().contiguous()
        for name, tensor in network.state_dict().items()
        if ".lora_" in name
    }
    save_file(state, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    record = {
        "peft_type": "LORA",
        "base_model_name_or_path": base,
        "r": settings.rank,
        "lora_alpha": settings.alpha,
        "lora_dropout": settings.dropout,
        "target_modules": target_pattern_of_state(state),
        "bias": "none",
        "task_type": None,
        "inference_mode": True,
    }
    (folder / CONFIG_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(dict(network.config.raw), indent=2) + "\n", encoding="utf-8")


def target_pattern_of_state(state: dict[str, Any]) -> list[str]:
    """Return the paths of the adapted layers, as PEFT's config names them."""
    from dare_eval.networks.adapters import PREFIX

    return sorted({name.removeprefix(PREFIX).partition(".lora_")[0] for name in state})
