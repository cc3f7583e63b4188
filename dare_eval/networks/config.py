"""What a network is, read from config.json: sizes, switches and token ids, as one frozen record.

A family module turns its own config.json into a ``NetworkConfig``; everything else reads only that. Switches that
no supported checkpoint sets (ALiBi, rotary scaling, other activations) are refused by name instead of being
carried along unused. Token ids that config.json leaves out are looked up in the tokenizer's files and, last, in
the family's published defaults. No torch here: a config is checked before a weight is read.

    >>> read_config("checkpoints/my_model").mask_id        # doctest: +SKIP
    126336
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError, UsageError, unknown
from dare_eval.networks.names import KeyNames
from dare_eval.spec import FAMILIES, check_token_ids

if TYPE_CHECKING:
    from dare_eval.networks.families.base import Family

TOKEN_KEYS = ("mask_id", "pad_id", "eos_id", "eot_id", "bos_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoEConfig:
    """Mixture-of-experts switches; the routing formulas stand in ``dare_eval.networks.moe``."""

    experts: int
    top_k: int
    expert_ffn: int
    routing: str
    """``softmax`` or ``grouped_sigmoid``."""
    renormalise: bool
    """Divide the weights of the chosen experts by their sum."""
    sparse_layers: tuple[bool, ...]
    """Per layer: True = experts, False = one dense feed-forward network."""
    expert_bias: bool = False
    biased_weights: bool = False
    """The bias also changes the weights (LLaDA-MoE), not only the choice (LLaDA2)."""
    shared_ffn: int | None = None
    """Width of the expert that every token passes, added unweighted."""
    groups: int = 1
    top_groups: int = 1
    """Groups that stay open to a token; the experts are chosen inside them."""
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a routing that cannot be carried out."""
        if self.experts % self.groups:
            raise DataError(
                "the experts do not divide into the routing groups",
                seen=f"{self.experts} experts, n_group = {self.groups}",
                allowed="num_experts a multiple of n_group",
            )
        reachable = self.experts // self.groups * self.top_groups
        if not 1 <= self.top_groups <= self.groups or not 1 <= self.top_k <= reachable:
            raise DataError(
                "a token would need more experts than routing leaves open",
                seen=f"num_experts_per_tok = {self.top_k}, topk_group = {self.top_groups} of {self.groups} groups",
                allowed=f"1 .. {max(reachable, 0)} experts per token, topk_group from 1 to n_group",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Sizes, switches and token ids of one network."""

    family: str
    names: KeyNames
    vocab_size: int
    """Rows of the embedding table."""
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    norm_eps: float
    rope_theta: float
    rotary_dim: int
    """Leading channels of a head that rotate."""
    context_length: int
    init_std: float = 0.02
    learned_positions: int | None = None
    """Rows of a learned position table added to the embeddings; None for none."""
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: bool = False
    fused_qkv: bool = False
    tied_head: bool = False
    shift: bool = False
    """Row i of the logits predicts token i + 1."""
    block_length: int | None = None
    """Trained block length; the network is block-causal when it is set, else bidirectional."""
    moe: MoEConfig | None = None
    mask_id: int
    pad_id: int
    eos_id: int
    eot_id: int | None = None
    bos_id: int | None = None
    stop_ids: tuple[int, ...] = ()
    """Every id that ends a response: EOS, end of turn, and what generation_config.json adds."""
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """config.json as it was read; saved back unchanged."""

    def check_tokenizer(self, size: int) -> None:
        """Refuse a tokenizer with more tokens than the embedding table has rows."""
        if size > self.vocab_size:
            raise DataError(
                "the tokenizer has more tokens than the network has embeddings",
                seen=f"{size} tokens, vocab_size {self.vocab_size}",
                allowed=f"at most {self.vocab_size} tokens",
                remedy="use the tokenizer that was saved with this checkpoint",
            )


def read_config(path: str | Path, *, token_ids: Mapping[str, int] | None = None) -> NetworkConfig:
    """Return the config of the checkpoint at ``path`` (local folder, packaged name or hub id).

    ``token_ids`` overrides ids by name (``mask_id``, ``pad_id``, ``eos_id``, ``eot_id``, ``bos_id``). Raises
    ``DataError`` for a missing or malformed file and for unsupported architectures, ``UsageError`` for token ids
    that decoding cannot work with.
    """
    from dare_eval.networks.adapters import base_folder, is_adapter
    from dare_eval.networks.paths import resolve_model_path

    folder = resolve_model_path(str(path))
    if is_adapter(folder) and not (folder / "config.json").is_file():
        folder = base_folder(folder)
    raw = read_json(folder / "config.json")
    return make_config(raw, folder=folder, token_ids=token_ids)


def make_config(
    raw: Mapping[str, Any], *, folder: Path | None = None, token_ids: Mapping[str, int] | None = None
) -> NetworkConfig:
    """Return the config for the mapping ``raw`` (the content of a config.json), checked."""
    from dare_eval.networks.token_ids import find_token_ids

    for key in token_ids or {}:
        if key not in TOKEN_KEYS:
            raise unknown("token id", key, TOKEN_KEYS)
    family = find_family(raw)
    try:
        fields = family.parse(raw)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise DataError(
            f"config.json of family '{family.name}' holds a value of the wrong type: {error}",
            seen=", ".join(f"{key} {value!r}" for key, value in raw.items() if isinstance(value, str | float))[:300],
            allowed="whole numbers as sizes",
        ) from error
    ids = find_token_ids(raw, family, folder, fields["vocab_size"], token_ids or {})
    check_token_ids(mask_id=ids["mask_id"], pad_id=ids["pad_id"], vocab_size=fields["vocab_size"])
    _check_sizes(fields)
    return NetworkConfig(family=family.name, raw=dict(raw), **fields, **ids)


def find_family(raw: Mapping[str, Any]) -> Family:
    """Return the family whose model_type or architecture ``raw`` names; raises ``UsageError`` for none."""
    families: list[Family] = [FAMILIES.get(name) for name in FAMILIES.names()]
    model_type = raw.get("model_type")
    for family in families:
        if model_type in family.model_types:
            return family
    for family in families:
        if set(raw.get("architectures") or ()) & set(family.architectures):
            return family
    known = [kind for family in families for kind in family.model_types]
    raise unknown("model_type", str(model_type), known, remedy="add a family through the entry points 'dare.families'")


def read_json(path: Path) -> dict[str, Any]:
    """Return the mapping stored at ``path``; raises ``DataError`` naming the file when it is absent or broken."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path.name} is missing", seen=path, remedy="point to a checkpoint folder") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} is not valid JSON: {error}", seen=path, remedy="restore the file") from error
    if not isinstance(content, dict):
        raise DataError(f"{path.name} holds no mapping", seen=type(content).__name__, allowed="a JSON object")
    return content


def _check_sizes(fields: Mapping[str, Any]) -> None:
    for key in ("vocab_size", "width", "layers", "heads", "kv_heads", "head_dim", "ffn", "context_length"):
        if not isinstance(fields[key], int) or fields[key] < 1:
            raise DataError(f"config.json gives no usable {key}", seen=fields[key], allowed="an integer above 0")
    if fields["rotary_dim"] % 2:
        raise UsageError(
            "rotary positions turn pairs of a head's dimensions, and one head has an odd number of them",
            seen=f"width {fields['width']}, {fields['heads']} heads: {fields['rotary_dim']} dimensions each",
            allowed="an even number of dimensions per head",
        )
    if fields["heads"] % fields["kv_heads"]:
        raise UsageError(
            "the number of heads is not a multiple of the number of key/value heads",
            seen=f"{fields['heads']} heads, {fields['kv_heads']} key/value heads",
            allowed=f"a divisor of {fields['heads']}",
        )
    block = fields.get("block_length")
    if block is not None and (not isinstance(block, int) or block < 1):
        raise DataError("block_size is out of range", seen=block, allowed="an integer above 0")
