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
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError, SetupError, UsageError, unknown
from dare_eval.networks.names import KeyNames
from dare_eval.spec import FAMILIES, check_token_ids
from dare_eval.spec.checks import is_count

if TYPE_CHECKING:
    from dare_eval.networks.families.base import Family

TOKEN_KEYS = ("mask_id", "pad_id", "eos_id", "eot_id", "bos_id")
MOE_KEYS = {
    "experts": "num_experts",
    "top_k": "num_experts_per_tok",
    "expert_ffn": "width of an expert (moe_intermediate_size, expert_intermediate_size)",
    "groups": "n_group",
    "top_groups": "topk_group",
    "shared_ffn": "width of the shared expert (num_shared_experts, shared_expert_intermediate_size)",
}
"""Fields of ``MoEConfig`` by what a config.json calls them."""


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
        for key in ("experts", "top_k", "expert_ffn", "groups", "top_groups", "shared_ffn"):
            value = getattr(self, key)
            if not is_count(value) and not (key == "shared_ffn" and value in (None, 0)):
                raise DataError(
                    f"config.json gives no usable {MOE_KEYS[key]}", seen=repr(value), allowed="an integer above 0"
                )
        if isinstance(self.scale, bool) or not isinstance(self.scale, int | float) or not math.isfinite(self.scale):
            raise DataError(
                "config.json gives no usable routed_scaling_factor", seen=repr(self.scale), allowed="a finite number"
            )
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

    def canvas_length(self, block_length: int | None = None) -> int:
        """Return the longest prompt plus response: the context, in whole blocks if the network is block-causal.

        Such a network decodes whole blocks counted from the first prompt token, so a last part of a block is no use.
        """
        longest = min(self.context_length, self.learned_positions or self.context_length)
        if self.block_length is None or block_length is None:
            return longest
        return longest // block_length * block_length

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
    from dare_eval.networks.field_checks import check_fields, check_sizes
    from dare_eval.networks.token_ids import check_ends, find_token_ids

    for key in token_ids or {}:
        if key not in TOKEN_KEYS:
            raise unknown("token id", key, TOKEN_KEYS)
    family = find_family(raw)
    try:
        fields = family.parse(raw)
    except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
        raise DataError(
            f"family '{family.name}' cannot read config.json, which lacks a key or holds a value of the wrong type: "
            f"{type(error).__name__}: {error}",
            seen=", ".join(f"{key} {value!r}" for key, value in raw.items())[:300],
            allowed="the keys and types that a published checkpoint of this family has",
        ) from error
    check_fields(family, fields)
    check_sizes(fields)
    ids = find_token_ids(raw, family, folder, fields["vocab_size"], token_ids or {})
    check_token_ids(mask_id=ids["mask_id"], pad_id=ids["pad_id"], vocab_size=fields["vocab_size"])
    check_ends(ids)
    return NetworkConfig(family=family.name, raw=dict(raw), **fields, **ids)


def find_family(raw: Mapping[str, Any]) -> Family:
    """Return the family whose model_type, else whose architecture ``raw`` names.

    Raises ``UsageError`` for none and for several (an outside package may not take a name that another family has),
    ``DataError`` for names of the wrong type, ``SetupError`` when an outside package brings the family broken.
    """
    model_type, architectures = _stated_names(raw)
    families: dict[str, Family] = FAMILIES.loadable()
    if model_type is not None and model_type in FAMILIES and model_type not in families:
        FAMILIES.get(model_type)  # left out because it is broken: asked for by name, it is an error
    by_type = [name for name, family in families.items() if model_type in family.model_types]
    by_class = [name for name, family in families.items() if set(architectures) & set(family.architectures)]
    if by_type or by_class:
        return _only(by_type or by_class, f"model_type '{model_type}'" if by_type else f"architectures {architectures}")
    known = [kind for family in families.values() for kind in family.model_types]
    raise unknown("model_type", str(model_type), known, remedy="add a family through the entry points 'dare.families'")


def _stated_names(raw: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    model_type, architectures = raw.get("model_type"), raw.get("architectures")
    if model_type is not None and not isinstance(model_type, str):
        raise DataError("config.json gives no usable model_type", seen=repr(model_type), allowed="a name")
    listed = [] if architectures is None else architectures
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise DataError(
            "config.json gives no usable architectures", seen=repr(architectures), allowed="a list of names"
        )
    return model_type, list(listed)


def _only(names: list[str], claimed: str) -> Family:
    if len(names) > 1:
        raise UsageError(
            f"{claimed} means several families: {', '.join(names)}",
            seen="; ".join(f"{name}: {FAMILIES.source(name)}" for name in names),
            allowed="one family for each model_type and architecture",
            remedy="give the family of the outside package names of its own, or uninstall that package",
        )
    family: Family = FAMILIES.get(names[0])
    if family.name != names[0]:
        raise SetupError(
            f"the family '{names[0]}' calls itself '{family.name}'",
            seen=FAMILIES.source(names[0]),
            allowed="one name",
            remedy=f"name = '{names[0]}' in that Family, or rename the entry point",
        )
    return family


def read_json(path: Path) -> dict[str, Any]:
    """Return the mapping stored at ``path``; raises ``DataError`` naming the file when it is absent or broken."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path.name} is missing", seen=path, remedy="point to a checkpoint folder") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} is not valid JSON: {error}", seen=path, remedy="restore the file") from error
    except OSError as error:
        raise DataError(
            f"{path.name} cannot be read: {error.strerror}", seen=path, remedy="restore the file"
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"{path.name} holds no mapping", seen=type(content).__name__, allowed="a JSON object")
    return content
