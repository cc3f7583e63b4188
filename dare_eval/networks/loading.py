"""Build, open and save networks.

Opening builds the module tree on the meta device, compares its keys and shapes with the file headers, then reads
each tensor once into its final place: no weight exists twice. Saving writes the original keys and config.json, so
open and save round-trip bit for bit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dare_eval.errors import DataError, UsageError, unknown
from dare_eval.networks.adapters import base_folder, is_adapter, merge_adapter
from dare_eval.networks.config import NetworkConfig, make_config, read_config
from dare_eval.networks.network import DiffusionNetwork
from dare_eval.networks.paths import resolve_model_path
from dare_eval.networks.placement import DeviceMap, device_of, layer_placement, resolve_device_map
from dare_eval.networks.quant import prepare, quantise
from dare_eval.networks.safetensors_io import REMEDY, Entry, list_tensors, read_tensors, same_content

DTYPES = ("auto", "float32", "bfloat16", "float16", "float64")
# Kept in the type it is stored in: a rounded bias changes which experts are chosen.
ROUTING_BIAS = "expert_bias"
# Rotary tables in old checkpoints are ignored: they are computed.
IGNORED = re.compile(r"rotary_emb\.(inv_freq|cos_cached|sin_cached)$")


def build_network(
    config: Mapping[str, Any] | NetworkConfig,
    *,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
    attn_backend: str = "auto",
) -> DiffusionNetwork:
    """Return a randomly initialised network on the CPU.

    ``config`` is the content of a config.json. Matrices and tables are drawn from N(0, init_std) in key order with
    ``generator`` (float32, then cast), norms are one, biases zero; the global generator is not touched.
    """
    resolved = config if isinstance(config, NetworkConfig) else make_config(config)
    with torch.device("meta"):
        network = DiffusionNetwork(resolved, attn_backend=attn_backend)
    for key, tensor in network.state_dict().items():
        value = _initial(key, tensor, resolved.init_std, generator)
        _assign(network, key, value if key.endswith(ROUTING_BIAS) else value.to(dtype))
    return network


def _initial(key: str, like: Tensor, std: float, generator: torch.Generator) -> Tensor:
    if like.ndim >= 2:
        return torch.empty(like.shape).normal_(0.0, std, generator=generator)
    return torch.ones(like.shape) if key.endswith(".weight") else torch.zeros(like.shape)


def load_network(
    path: str,
    *,
    dtype: str = "float32",
    device: str | torch.device = "cpu",
    attn_backend: str = "auto",
    token_ids: Mapping[str, int] | None = None,
    device_map: DeviceMap = None,
    quantize: str | None = None,
) -> DiffusionNetwork:
    """Open the checkpoint at ``path`` (folder, packaged name or hub id) in evaluation mode; an adapter with its base.

    Args:
        path: See ``resolve_model_path``.
        dtype: ``float32``, ``bfloat16``, ``float16``, ``float64``, or ``auto`` to keep each tensor's stored type.
        device: Where the network goes when ``device_map`` is not given.
        attn_backend: ``auto``, ``sdpa``, ``flex``, ``varlen`` or ``flash_attention_2``.
        token_ids: Overrides of token ids, see ``read_config``.
        device_map: ``"auto"`` or module paths to devices (longest prefix wins), see ``placement``.
        quantize: ``"4bit"`` for NF4 projections (extra ``quant``); None for none.

    Raises:
        DataError: Missing, corrupt or truncated files; missing, unexpected or misshapen tensors; weights that
            are NaN or infinite.
        UsageError: An unknown setting, or token ids that decoding cannot work with.
        SetupError: ``quantize`` without its package.
    """
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    folder = resolve_model_path(str(path))
    config = read_config(folder, token_ids=token_ids)
    with torch.device("meta"):
        network = DiffusionNetwork(config, attn_backend=attn_backend)
    adapted = is_adapter(folder)
    if adapted and quantize is not None:
        raise UsageError("an adapter cannot be merged into 4-bit weights", seen=folder, allowed="quantize unset")
    entries = match_keys(network, list_tensors(base_folder(folder) if adapted else folder))
    places = resolve_device_map(network, device_map, device)
    packed = prepare(network, quantize, dtype) if quantize is not None else set()
    targets = {key: (device_of(places, key), _kept_dtype(key, entry, dtype)) for key, entry in entries.items()}
    _fill(network, entries, targets, packed)
    network.placement = layer_placement(network)
    if adapted:
        merge_adapter(network, folder)
    network.is_loaded_in_4bit = quantize == "4bit"  # what PEFT asks to choose its layer
    return network.eval()


def _fill(
    network: DiffusionNetwork,
    entries: dict[str, Entry],
    targets: dict[str, tuple[torch.device, torch.dtype]],
    packed: set[str],
) -> None:
    """Read every tensor into its place; what is converted or moved passes through one reused buffer."""
    staged = {key for key, target in targets.items() if target != (torch.device("cpu"), entries[key].dtype)}
    for key, tensor in read_tensors(entries, staged=staged):
        place, kept = targets[key]
        value = tensor.to(kept) if key in packed else tensor.to(place, kept)
        _check_finite(key, value, entries[key])
        if key in packed:
            network.get_submodule(key.rpartition(".")[0]).weight = quantise(value, place)
        else:
            _assign(network, key, value)


def _check_finite(key: str, value: Tensor, entry: Entry) -> None:
    """Refuse NaN and infinity: one of them turns every answer into the lowest token ids without an error.

    Smallest and largest value carry both, and finding them takes no memory of the tensor's size.
    """
    if value.is_meta or not value.numel():
        return
    wide = value.float() if value.element_size() == 1 else value  # torch has no minimum of 8-bit floats
    if all(bound.isfinite() for bound in torch.aminmax(wide)):
        return
    narrow = value.dtype != entry.dtype
    raise DataError(
        f"{entry.file.name} holds numbers that are not finite in '{key}'",
        seen=f"{int((~wide.isfinite()).sum())} of {value.numel()} numbers are NaN or infinite as {_name(value.dtype)}",
        allowed="finite numbers",
        remedy=f"dtype = {_name(entry.dtype)}, as stored; else copy the file again" if narrow else REMEDY,
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _kept_dtype(key: str, entry: Entry, dtype: str) -> torch.dtype:
    """Return the type a tensor is kept in."""
    return entry.dtype if dtype == "auto" or key.endswith(ROUTING_BIAS) else getattr(torch, dtype)


def match_keys(network: DiffusionNetwork, entries: dict[str, Entry]) -> dict[str, Entry]:
    """Return the entries to read; raises ``DataError`` naming the first missing, unexpected or misshapen key."""
    expected = network.state_dict()
    found = {key: entry for key, entry in entries.items() if not IGNORED.search(key)}
    names = network.config.names
    head, embed = found.get(f"{names.head}.weight"), found.get(f"{names.embed}.weight")
    if network.config.tied_head and head is not None and embed is not None and same_content(head, embed):
        del found[f"{names.head}.weight"]
    _refuse(sorted(expected.keys() - found.keys()), "lacks tensors that config.json asks for", found)
    _refuse(sorted(found.keys() - expected.keys()), "has tensors that config.json does not ask for", found)
    for key, entry in found.items():
        if tuple(expected[key].shape) != entry.shape:
            raise DataError(
                f"{entry.file.name} has the wrong shape for '{key}'",
                seen=entry.shape,
                allowed=str(tuple(expected[key].shape)),
                remedy="use the config.json that was saved with these weights",
            )
        if not entry.dtype.is_floating_point:
            raise DataError(
                f"{entry.file.name} holds no floating-point numbers for '{key}'",
                seen=_name(entry.dtype),
                allowed="float32, bfloat16, float16, float64",
                remedy="use the checkpoint as it was before it was quantised",
            )
    return found


def _refuse(keys: list[str], what: str, entries: dict[str, Entry]) -> None:
    if not keys:
        return
    files = sorted({entry.file.name for entry in entries.values()}) or ["the checkpoint"]
    raise DataError(
        f"{files[0] if len(files) == 1 else 'the checkpoint'} {what}: {keys[0]}",
        seen=", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else ""),
        remedy="use the config.json that was saved with these weights (tie_word_embeddings for a missing head)",
    )


def _assign(network: DiffusionNetwork, key: str, tensor: Tensor) -> None:
    parent, _, leaf = key.rpartition(".")
    module = network.get_submodule(parent)
    if leaf in module._buffers:
        module._buffers[leaf] = tensor
    else:
        module.register_parameter(leaf, nn.Parameter(tensor, requires_grad=tensor.is_floating_point()))
