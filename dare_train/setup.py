"""Builds what a run needs from its settings: network, tokenizer, rows. Everything is checked before a weight is read.

A network that continues a checkpoint keeps that checkpoint's config.json; one that starts from noise gets the
token ids of its tokenizer written into the config it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dare_eval.errors import DataError, SetupError
from dare_train.config import DataSettings, ModelSettings, PairSettings
from dare_train.data.pairs import Pair, read_pairs
from dare_train.data.render import Example, Renderer
from dare_train.data.rows import SkippedRows, read_rows
from dare_train.data.spec import Selection, parse_sources, separate
from dare_train.draws import derive, seeded

T = TypeVar("T")


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


def build_model(plan: ModelPlan, settings: ModelSettings, seed: int, *, empty: bool = False) -> Any:
    """Return the network with its weights: those of the checkpoint, or drawn from the seed.

    ``empty`` gives the same modules on the meta device, for processes that are sent their share.
    """
    network = _empty_network(plan, settings) if empty else _filled_network(plan, settings, seed)
    if settings.lora:
        from dare_train.adapters import add_lora

        add_lora(network, settings.lora, seeded(derive(seed, "adapters")))
    return network


def _filled_network(plan: ModelPlan, settings: ModelSettings, seed: int) -> Any:
    from dare_eval.networks import build_network, load_network

    if plan.folder is not None:
        return load_network(str(plan.folder), dtype=settings.dtype, quantize=settings.quantize)
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
    return f"cuda:{local_rank}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """Tokenised rows and what the manifest says about them."""

    train: Sequence[Any]
    """``Example`` or ``Pair``."""
    heldout: Sequence[Any]
    record: Mapping[str, Any]
    """Sources, counts, skipped rows, content hash."""
    row_tokens: float
    """Mean tokens of a training row."""
    answer_tokens: float
    """Mean tokens of it that carry loss."""


def read_examples(plan: ModelPlan, settings: DataSettings) -> TrainingRows:
    """Return rows of prompt and answer as tokens; raises ``DataError`` for bad rows and for an empty set."""
    train, held = separate(parse_sources(settings.train))
    skipped = SkippedRows()
    renderer = Renderer(plan.tokenizer, settings, plan.end_ids)

    def read(selections: list[Selection]) -> dict[str, list[Example]]:
        return {str(item): list(renderer.rows(read_rows(item, settings, skipped), skipped)) for item in selections}

    return _collect(read(train), read(held), skipped, lambda example: [example])


def read_pair_set(plan: ModelPlan, settings: DataSettings) -> TrainingRows:
    """Return preference pairs as tokens; raises ``DataError`` for bad rows and for an empty set."""
    assert isinstance(settings, PairSettings)
    train, held = separate(parse_sources(settings.train))
    skipped = SkippedRows()
    renderer = Renderer(plan.tokenizer, settings, plan.end_ids)

    def read(selections: list[Selection]) -> dict[str, list[Pair]]:
        return {str(item): read_pairs([item], renderer, settings, skipped) for item in selections}

    return _collect(read(train), read(held), skipped, lambda pair: [pair.chosen, pair.rejected])


def _collect(
    train: dict[str, list[T]], held: dict[str, list[T]], skipped: SkippedRows, parts: Callable[[T], list[Example]]
) -> TrainingRows:
    rows = [row for found in train.values() for row in found]
    if not rows:
        raise DataError(
            "the training set is empty", seen=f"{list(train)}: {skipped.reasons}", allowed="at least one row"
        )
    examples = [example for row in rows for example in parts(row)]
    answers = sum(example.answer_length for example in examples)
    record = {
        "sources": {name: len(found) for name, found in train.items()},
        "held_out": {name: len(found) for name, found in held.items()},
        "skipped": skipped.reasons,
        "content_hash": content_hash(examples),
        "answer_tokens": answers,
    }
    return TrainingRows(
        train=rows,
        heldout=[row for found in held.values() for row in found],
        record=record,
        row_tokens=sum(len(example.ids) for example in examples) / len(rows),
        answer_tokens=answers / len(rows),
    )


def content_hash(examples: list[Example]) -> str:
    """Return the SHA-256 over the token ids of all rows, in order."""
    import hashlib

    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example.prompt_length}:{','.join(map(str, example.ids))}\n".encode())
    return digest.hexdigest()
