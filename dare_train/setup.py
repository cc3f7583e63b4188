"""Builds what a run needs from its settings: network, tokenizer, rows. Everything is checked before a weight is read.

A network that continues a checkpoint keeps that checkpoint's config.json; one that starts from noise gets the
token ids of its tokenizer written into the config it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError, SetupError
from dare_train.config import DataSettings, ModelSettings
from dare_train.data.render import Example, Renderer
from dare_train.data.rows import SkippedRows, read_rows
from dare_train.data.spec import parse_sources, separate
from dare_train.draws import derive, seeded


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A network that can be built: its checked config, its tokenizer, and where its weights come from."""

    config: Any
    """``NetworkConfig``."""
    tokenizer: Any
    folder: Path | None
    """Checkpoint that is continued; None for a network that starts from noise."""

    @property
    def end_ids(self) -> frozenset[int]:
        """Token ids that end an answer."""
        return frozenset(self.config.stop_ids)


def plan_model(settings: ModelSettings) -> ModelPlan:
    """Return the model that ``settings`` describe without reading its weights.

    Raises the errors of ``dare_eval.networks`` (missing checkpoint, pad equal to mask, tokenizer too large).
    """
    from dare_eval.networks import make_config, read_config, resolve_model_path

    if settings.architecture is None:
        folder = resolve_model_path(str(settings.base))
        config = read_config(folder)
        tokenizer = load_tokenizer(settings.tokenizer or str(folder))
    else:
        folder = None
        tokenizer = load_tokenizer(str(settings.tokenizer))
        config = make_config({**token_ids(tokenizer), **settings.architecture})
    config.check_tokenizer(len(tokenizer))
    return ModelPlan(config, tokenizer, folder)


def load_tokenizer(name: str) -> Any:
    """Return a built-in tokenizer ('puzzles', 'list_ops') or a checkpoint's; ``DataError`` when there is none."""
    from dare_train.data.tokenizer import VOCABULARIES, build_puzzle_tokenizer

    if name in VOCABULARIES:
        return build_puzzle_tokenizer(name)
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    from dare_eval.networks import resolve_model_path

    folder = resolve_model_path(name)
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


def build_model(plan: ModelPlan, settings: ModelSettings, seed: int, device: str) -> Any:
    """Return the network with its weights: those of the checkpoint, or drawn from the seed."""
    from dare_eval.networks import build_network, load_network

    if plan.folder is not None:
        return load_network(str(plan.folder), dtype=settings.dtype, device=device)
    network = build_network(dict(plan.config.raw), generator=seeded(derive(seed, "initialisation")))
    return network.to(device=device, dtype=torch_dtype(settings.dtype))


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
    return f"cuda:{local_rank}"


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Tokenised rows and what the manifest says about them."""

    train: list[Example]
    record: Mapping[str, Any]
    """Sources, counts, skipped rows, content hash."""


def read_examples(plan: ModelPlan, settings: DataSettings) -> TrainingRows:
    """Return the training rows as tokens; raises ``DataError`` for bad rows and for an empty set."""
    selections, held = separate(parse_sources(settings.train))
    skipped = SkippedRows()
    examples: list[Example] = []
    counts: dict[str, int] = {}
    for selection in selections:
        rows = read_rows(selection, settings, skipped)
        found = list(Renderer(plan.tokenizer, settings, plan.end_ids).rows(rows, skipped))
        counts[str(selection)] = len(found)
        examples += found
    if not examples:
        raise DataError(
            "the training set is empty", seen=f"{settings.train}: {skipped.reasons}", allowed="at least one row"
        )
    record = {
        "sources": counts,
        "held_out": [str(item) for item in held],
        "skipped": skipped.reasons,
        "content_hash": content_hash(examples),
        "answer_tokens": sum(example.answer_length for example in examples),
    }
    return TrainingRows(examples, record)


def content_hash(examples: list[Example]) -> str:
    """Return the SHA-256 over the token ids of all rows, in order."""
    import hashlib

    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example.prompt_length}:{','.join(map(str, example.ids))}\n".encode())
    return digest.hexdigest()
