"""Settings of a native wrapper checked against its checkpoint's config, before a weight is read.

Planning and loading both come here, so what is wrong is said when the run is planned. Decode settings have their own
checks (``dare_eval.spec``); what only a machine can tell (is there a GPU) is asked when the network is loaded.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from typing import Any

from dare_eval.errors import SetupError, UsageError, unknown
from dare_eval.spec import DecodeSpec
from dare_eval.spec.checks import is_count

DEVICES = ("auto", "spread", "cpu", "cuda", "mps", "xpu")
"""``auto``: CUDA when there is one; ``spread``: layers over all visible GPUs; an index may follow, as in ``cuda:1``."""
PACKED_ONLY = ("varlen", "flash_attention_2")
"""Attention backends that cannot express a block-causal mask."""


def check_settings(settings: Mapping[str, Any], config: Any) -> None:
    """Check what a wrapper takes besides decode settings; raises ``UsageError`` naming value and what is allowed."""
    check_device(settings.get("device", "auto"))
    check_attention(settings.get("attn_backend", "auto"), config)
    check_dtype((settings.get("decoding") or {}).get("dtype", "float32"))
    template = settings.get("meta_template")
    if template is not None and not (isinstance(template, Mapping) and "round" in template):
        raise UsageError("meta_template has no round", seen=template, allowed="dict(round=[...]), or unset")
    if not isinstance(settings.get("record_x0", False), bool):
        raise UsageError("record_x0 is no switch", seen=repr(settings["record_x0"]), allowed="True or False")


def check_names(wrapper: type, settings: Mapping[str, Any]) -> None:
    """Refuse settings that ``wrapper`` does not take, naming the nearest one."""
    known = list(inspect.signature(wrapper).parameters)
    for name in settings:
        if name not in known:
            raise unknown(f"setting of {wrapper.__name__}", name, known)


def check_device(device: Any) -> None:
    """Refuse a device that no machine has."""
    kind, colon, index = str(device).partition(":")
    if not isinstance(device, str) or kind not in DEVICES:
        raise unknown("device", str(device), DEVICES)
    if colon and (kind in ("auto", "spread") or not index.isdigit()):
        raise UsageError("the device's index is no number", seen=device, allowed="a name such as cuda or cuda:1")


def check_attention(backend: Any, config: Any) -> None:
    """Refuse an attention backend that does not exist, is not installed, or cannot serve this network."""
    from dare_eval.networks.attention.plan import check_backend

    check_backend(str(backend))
    if backend in PACKED_ONLY and config.block_length is not None:
        raise UsageError(
            f"attention backend '{backend}' has no block-causal masks, which this network needs",
            seen=f"attn_backend = {backend}, blocks of {config.block_length}",
            allowed="auto, sdpa or flex",
            remedy="attn_backend = 'auto'",
        )
    if backend == "flash_attention_2" and importlib.util.find_spec("flash_attn") is None:
        raise SetupError(
            f"attention backend '{backend}' needs the package flash_attn",
            seen="not installed",
            remedy="pip install 'dare[flash]', or attn_backend = 'auto'",
        )


def check_dtype(dtype: Any) -> None:
    """Refuse an unknown compute type; a decode spec checks its own, a likelihood task has none."""
    from dare_eval.networks.loading import DTYPES

    if dtype not in DTYPES:
        raise unknown("dtype", str(dtype), DTYPES)


def context_limit(max_seq_len: Any, config: Any, spec: DecodeSpec | None) -> int:
    """Return the longest prompt plus response in tokens; raises ``UsageError`` when no prompt fits beside ``spec``."""
    own: int = config.canvas_length(None if spec is None else spec.block_length)
    if max_seq_len is not None and not is_count(max_seq_len):
        raise UsageError(
            f"max_seq_len is out of range: {max_seq_len!r}",
            seen=max_seq_len,
            allowed=f"an integer above 0; the checkpoint's own limit is {own}",
            remedy="leave it out",
        )
    limit = own if max_seq_len is None else min(int(max_seq_len), own)
    if spec is not None and spec.gen_length >= limit:
        most = limit or config.canvas_length()
        half = most // 2 // spec.block_length * spec.block_length
        what = f"gen_length {spec.gen_length} leaves no room for a prompt"
        raise UsageError(
            what if limit else f"block_length {spec.block_length} is longer than the context",
            seen=f"gen_length = {spec.gen_length}, block_length = {spec.block_length}, context {most} tokens",
            allowed=f"gen_length below {limit}" if limit else f"blocks of at most {most} tokens",
            remedy=f"gen_length = {half}" if half else f"gen_length = block_length = {max(most // 2, 1)}",
        )
    return limit


def place_of(device: str) -> str:
    """Return the torch device that ``device`` means here; raises ``SetupError`` when this machine has none."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, index = device.partition(":")
    counts = {"cuda": torch.cuda.device_count, "xpu": torch.xpu.device_count}
    count = counts[kind]() if kind in counts else int(kind == "cpu" or torch.backends.mps.is_available())
    if int(index or 0) >= count:
        raise SetupError(
            f"there is no device '{device}' on this machine",
            seen=f"{count} {kind} devices",
            allowed="auto, cpu" + (f", {kind}:0 to {kind}:{count - 1}" if count else ""),
            remedy="device = 'auto'; dare-eval check says what was found",
        )
    return device
