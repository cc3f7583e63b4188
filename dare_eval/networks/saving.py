"""Write a network as a checkpoint folder: original keys, config.json as it was read, shards of bounded size.

Files are written under a temporary name and renamed, so a reader never sees half a file and a checkpoint may be
saved over the folder it was opened from. Tokenizer files are copied on request.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from dare_eval.errors import DataError, UsageError
from dare_eval.networks.network import DiffusionNetwork
from dare_eval.networks.safetensors_io import INDEX

OURS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")
COMPANIONS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "generation_config.json",
)


def save_network(
    network: DiffusionNetwork,
    folder: str | Path,
    *,
    companions_from: str | Path | None = None,
    max_shard_gib: float = 5.0,
) -> Path:
    """Write ``network`` to ``folder`` and return it; ``companions_from`` is a folder whose tokenizer files go along.

    Raises ``UsageError`` for a quantised network and ``DataError`` when the keys are not the checkpoint's (an adapter
    that was not merged).
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    state = {key: tensor.detach() for key, tensor in network.state_dict().items()}
    _check_keys(network, state)
    write_shards(state, folder, max_shard_gib)
    _write_text(folder / "config.json", json.dumps(_config(network, state), indent=2, ensure_ascii=False) + "\n")
    for name in COMPANIONS if companions_from is not None else ():
        source = Path(companions_from or ".") / name
        if source.is_file() and source.resolve() != (folder / name).resolve():
            shutil.copyfile(source, folder / name)
    return folder


def _config(network: DiffusionNetwork, state: dict[str, Tensor]) -> dict[str, Any]:
    raw = dict(network.config.raw)
    stored = str(state[f"{network.config.names.embed}.weight"].dtype).removeprefix("torch.")
    keys = [key for key in ("torch_dtype", "dtype") if key in raw] or ["torch_dtype"]
    return raw | dict.fromkeys(keys, stored)


def _check_keys(network: DiffusionNetwork, state: dict[str, Tensor]) -> None:
    strange = [key for key in state if ".base_layer." in key or ".lora_" in key]
    if strange:
        raise DataError("the network carries an adapter", seen=strange[0], remedy="merge it first (merge_and_unload)")
    if any(not tensor.is_floating_point() for tensor in state.values()):
        raise UsageError("a quantised network cannot be saved", allowed="a network opened without quantize")


def write_shards(state: dict[str, Tensor], folder: Path, max_shard_gib: float = 5.0) -> None:
    """Write weights as safetensors shards with their index; shards of an earlier save that are left over go."""
    from huggingface_hub import split_torch_state_dict_into_shards

    plan = split_torch_state_dict_into_shards(state, max_shard_size=int(max_shard_gib * 2**30))
    for name, keys in plan.filename_to_tensors.items():
        _write_tensors({key: state[key] for key in keys}, folder / name)
    written = [path.name for path in folder.glob("*.safetensors") if OURS.fullmatch(path.name)]
    stale = set(written) - set(plan.filename_to_tensors)
    if plan.is_sharded:
        index = {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename}
        _write_text(folder / INDEX, json.dumps(index, indent=2) + "\n")
    else:
        (folder / INDEX).unlink(missing_ok=True)
    for name in stale:
        (folder / name).unlink()


def _write_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    from safetensors.torch import save_file

    partial = path.with_name(path.name + ".partial")
    save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, partial, metadata={"format": "pt"})
    partial.replace(path)


def _write_text(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
