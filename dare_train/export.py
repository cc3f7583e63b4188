"""Writes the finished network as a checkpoint folder for evaluation: original keys, config.json, tokenizer.

The folder appears under its final name only when it is whole. Leaves out checkpoints for resuming
(``dare_train.engine.checkpoint``).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError, SetupError, UsageError
from dare_eval.records.atomic import write_atomic
from dare_train.config import ModelSettings
from dare_train.settings import read_yaml


def export_model(network: Any, tokenizer: Any, folder: Path, settings: ModelSettings) -> Path:
    """Write ``network`` (its adapter alone when it has one) and ``tokenizer`` to ``folder`` and return it.

    Raises ``SetupError`` when the disk refuses.
    """
    from safetensors import SafetensorError

    draft = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _save_weights(network, draft, settings)
        tokenizer.save_pretrained(str(draft))
        _portable(draft / "tokenizer_config.json")
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise SetupError(
            f"the finished model cannot be written: {getattr(error, 'strerror', None) or error}",
            seen=folder,
            allowed="a writable disk with room",
            remedy="free disk space and run the same command: training is not repeated",
        ) from error
    return folder


def export_checkpoint(path: Path, output: Path | None, *, merge: bool = False) -> Path:
    """Write the checkpoint at ``path`` (a run folder means its newest one) as a model folder and return that.

    An adapter is written alone, or added to its base with ``merge``. Raises ``UsageError`` for a folder that holds
    no checkpoint or exists already, ``DataError`` for a damaged one.
    """
    from dare_train.engine.checkpoint import checkpoints, read_weights
    from dare_train.setup import build_model, plan_model

    found = checkpoints(path / "checkpoints")[-1:] or ([path] if (path / "progress.json").is_file() else [])
    if not found:
        raise UsageError("no checkpoint here", seen=path, allowed="a run folder, or one of its checkpoints")
    run = found[0].parent.parent
    settings, seed = _read_run(run / "config.yaml")
    target = output or run / "export" / found[0].name
    if target.exists():
        raise UsageError("the folder to write exists already", seen=target, remedy="--output another one")
    plan = plan_model(settings)
    network = build_model(plan, settings, seed)
    read_weights(found[0], network)
    if settings.lora and merge:
        from dare_train.adapters import merge_adapters

        merge_adapters(network)
        settings = settings.model_copy(update={"lora": None})
    return export_model(network, plan.tokenizer, target, settings)


def _read_run(path: Path) -> tuple[ModelSettings, int]:
    """Return the model settings and the seed that a run stored; raises ``DataError`` when they are damaged."""
    try:
        record = read_yaml(path)
        # Only the adapter of a network in 4 bits is trained: its base need not be packed again to write it.
        return ModelSettings.model_validate({**record["model"], "quantize": None}), int(record["seed"])
    except (UsageError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"the settings of the run cannot be read: {type(error).__name__}: {error}",
            seen=path,
            allowed="the config.yaml that the run wrote",
            remedy="restore it, or run the training command again with --fresh",
        ) from error


def _save_weights(network: Any, folder: Path, settings: ModelSettings) -> None:
    if settings.lora:
        from dare_train.adapters import save_adapter

        base = str(settings.base)
        save_adapter(network, folder, settings.lora, str(Path(base).resolve()) if Path(base).is_dir() else base)
        return
    from dare_eval.networks import save_network

    save_network(network, folder)


def _portable(path: Path) -> None:
    """Name the tokenizer class that every supported transformers release knows."""
    if not path.is_file():
        return
    record = json.loads(path.read_text(encoding="utf-8"))
    if record.get("tokenizer_class") == "TokenizersBackend":
        record["tokenizer_class"] = "PreTrainedTokenizerFast"
        write_atomic(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
