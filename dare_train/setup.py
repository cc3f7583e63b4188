"""Builds the model of a run from its settings: network and tokenizer, checked before a weight is read.

A network that continues a checkpoint keeps that checkpoint's config.json; one that starts from noise gets the
token ids of its tokenizer written into the config it was given.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError, SetupError, nearest
from dare_train.config import ModelSettings
from dare_train.draws import derive, seeded


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A network that can be built: its checked config, its tokenizer, and where its weights come from."""

    config: Any
    """``NetworkConfig``."""
    tokenizer: Any
    """None only in a plan of a checkpoint that is not on this machine (``plan_here``)."""
    folder: Path | None
    """Checkpoint that is continued; None for a network that starts from noise."""

    @property
    def end_ids(self) -> frozenset[int]:
        """Token ids that end an answer."""
        return frozenset(self.config.stop_ids)


def plan_model(settings: ModelSettings, *, download: bool = True) -> ModelPlan:
    """Return the model that ``settings`` describe without reading its weights.

    Raises the errors of ``dare_eval.networks`` (missing checkpoint, pad equal to mask, tokenizer too large).
    """
    from dare_eval.networks import make_config, read_config, resolve_model_path

    if settings.architecture is None:
        folder = resolve_model_path(str(settings.base), download=download)
        config = read_config(folder)
        tokenizer = load_tokenizer(settings.tokenizer or str(folder), download=download)
    else:
        folder = None
        tokenizer = load_tokenizer(str(settings.tokenizer), download=download)
        config = make_config({**token_ids(tokenizer), **settings.architecture})
    config.check_tokenizer(len(tokenizer))
    return ModelPlan(config, tokenizer, folder)


def plan_here(settings: ModelSettings) -> tuple[ModelPlan, str]:
    """Return the model as far as this machine knows it, downloading nothing, and what is not known ('' for nothing).

    A checkpoint that is elsewhere is planned by its published sizes and has no tokenizer then, unless the settings
    name one. Raises the errors of ``plan_model``, also for a checkpoint that is elsewhere and of unknown size.
    """
    from dare_eval.networks import resolve_model_path
    from dare_eval.networks.paths import variable_names
    from dare_eval.presets.sizes import published_config, sizes

    base = settings.base
    if base in sizes() and not any(os.environ.get(name) for name in variable_names(base)):
        try:
            resolve_model_path(base, download=False)
        except DataError:
            own = load_tokenizer(settings.tokenizer, download=False) if settings.tokenizer else None
            return ModelPlan(published_config(base), own, None), f"model: {base} is not on this machine; its sizes are"
    return plan_model(settings, download=False), ""


def load_tokenizer(name: str, *, download: bool = True) -> Any:
    """Return a built-in tokenizer ('puzzles', 'list_ops') or a checkpoint's; ``DataError`` when there is none."""
    from dare_train.data.tokenizer import VOCABULARIES, build_puzzle_tokenizer

    if name in VOCABULARIES:
        return build_puzzle_tokenizer(name)
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    from dare_eval.networks import resolve_model_path

    try:
        folder = resolve_model_path(name, download=download)
    except DataError as error:
        hint = nearest(name, VOCABULARIES)
        raise DataError(
            f"there is no tokenizer '{name}': " + (f"did you mean '{hint}'?" if hint else error.what),
            seen=error.seen,
            allowed=f"{', '.join(VOCABULARIES)} (built in), a folder, or a hub id",
            remedy="set model.tokenizer",
        ) from error
    # tokenizer.json says everything; the Auto class would first look for a model class that transformers lacks.
    kind = PreTrainedTokenizerFast if (folder / "tokenizer.json").is_file() else AutoTokenizer
    try:
        return kind.from_pretrained(str(folder))
    except (OSError, ValueError) as error:
        raise DataError(
            f"the tokenizer cannot be loaded: {error}", seen=folder, remedy="set model.tokenizer"
        ) from error


def token_ids(tokenizer: Any) -> dict[str, int]:
    """Return the config.json entries that follow from a tokenizer."""
    found = {
        "vocab_size": len(tokenizer),
        "mask_token_id": tokenizer.mask_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.bos_token_id,
    }
    return {key: value for key, value in found.items() if value is not None}


def build_model(
    plan: ModelPlan, settings: ModelSettings, seed: int, *, empty: bool = False, device: str = "cpu"
) -> Any:
    """Return the network with its weights: those of the checkpoint, or drawn from the seed.

    ``empty`` gives the same modules on the meta device, for processes that are sent their share. Weights in 4 bits
    are made on ``device``; all others on the CPU, where the caller moves them from.
    """
    network = _empty_network(plan, settings) if empty else _filled_network(plan, settings, seed, device)
    if settings.lora:
        from dare_train.adapters import add_lora

        add_lora(network, settings.lora, seeded(derive(seed, "adapters")))
    return network


def _filled_network(plan: ModelPlan, settings: ModelSettings, seed: int, device: str) -> Any:
    from dare_eval.networks import build_network, load_network

    if plan.folder is not None:
        place = device if settings.quantize else "cpu"
        return load_network(str(plan.folder), dtype=settings.dtype, device=place, quantize=settings.quantize)
    network = build_network(dict(plan.config.raw), generator=seeded(derive(seed, "initialisation")))
    return network.to(torch_dtype(settings.dtype))


def _empty_network(plan: ModelPlan, settings: ModelSettings) -> Any:
    import torch

    from dare_eval.networks import DiffusionNetwork

    with torch.device("meta"):
        return DiffusionNetwork(plan.config).to(torch_dtype(settings.dtype))


def torch_dtype(name: str) -> Any:
    """Return the torch type called ``name``."""
    import torch

    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}[name]


def choose_device(name: str, local_rank: int = 0) -> str:
    """Return the device to train on; raises ``SetupError`` when CUDA is asked for and absent."""
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise SetupError(
            "train.device = cuda, but torch sees no GPU", seen=torch.__version__, remedy="train.device = cpu"
        )
    if name == "cpu" or not torch.cuda.is_available():
        return "cpu"
    return f"cuda:{local_rank % torch.cuda.device_count()}"  # a task that sees one GPU only calls it 0
