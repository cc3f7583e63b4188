"""A second implementation of every family for one sequence: float64, explicit loops, read from the weights alone.

Slow on purpose; it shares nothing with the library but the names of the weights.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

State = dict[str, Tensor]


def plain_logits(raw: dict[str, Any], state: State, ids: list[int], allowed: list[list[bool]]) -> Tensor:
    """Return the logits [T, V] of one sequence; ``allowed[q][k]`` says whether q sees k."""
    state = {key: value.double() for key, value in state.items()}
    if raw["model_type"] == "llada":
        raw = _as_qwen(raw)
        state = {_rename(key): value for key, value in state.items()}
    state = {
        key.replace("word_embeddings", "embed_tokens").replace("attention.dense", "self_attn.o_proj"): v
        for key, v in state.items()
    }
    hidden = [state["model.embed_tokens.weight"][token] for token in ids]
    if raw.get("learned_positions"):
        hidden = [h + state["wpe.weight"][i] for i, h in enumerate(hidden)]
    for layer in range(raw["num_hidden_layers"]):
        own = {
            key.removeprefix(f"model.layers.{layer}."): v for key, v in state.items() if f"model.layers.{layer}." in key
        }
        normed = [_norm(h, own["input_layernorm.weight"], raw["rms_norm_eps"]) for h in hidden]
        hidden = [h + a for h, a in zip(hidden, _attention(raw, own, normed, allowed), strict=True)]
        normed = [_norm(h, own["post_attention_layernorm.weight"], raw["rms_norm_eps"]) for h in hidden]
        hidden = [h + _feed_forward(raw, own, n) for h, n in zip(hidden, normed, strict=True)]
    head = state.get("lm_head.weight", state["model.embed_tokens.weight"])
    return torch.stack([head @ _norm(h, state["model.norm.weight"], raw["rms_norm_eps"]) for h in hidden])


def _as_qwen(raw: dict[str, Any]) -> dict[str, Any]:
    return raw | {
        "num_hidden_layers": raw["n_layers"],
        "num_attention_heads": raw["n_heads"],
        "num_key_value_heads": raw["n_kv_heads"],
        "hidden_size": raw["d_model"],
    }


def _rename(key: str) -> str:
    if key.startswith("model.transformer.blocks."):
        _, _, _, layer, leaf, kind = key.split(".")
        names = {
            "attn_norm": "input_layernorm",
            "ff_norm": "post_attention_layernorm",
            "attn_out": "self_attn.o_proj",
            "ff_proj": "mlp.gate_proj",
            "up_proj": "mlp.up_proj",
            "ff_out": "mlp.down_proj",
        }
        return f"model.layers.{layer}.{names.get(leaf, 'self_attn.' + leaf)}.{kind}"
    tops = {"wte": "model.embed_tokens", "wpe": "wpe", "ln_f": "model.norm", "ff_out": "lm_head"}
    return tops[key.split(".")[2]] + ".weight"


def _norm(vector: Tensor, weight: Tensor, eps: float) -> Tensor:
    return weight * vector / math.sqrt(float((vector * vector).mean()) + eps)


def _linear(own: State, name: str, vector: Tensor) -> Tensor:
    out = own[name + ".weight"] @ vector
    return out + own[name + ".bias"] if name + ".bias" in own else out


def _attention(raw: dict[str, Any], own: State, hidden: list[Tensor], allowed: list[list[bool]]) -> list[Tensor]:
    heads, groups = raw["num_attention_heads"], raw["num_key_value_heads"]
    size = raw.get("head_dim") or raw["hidden_size"] // heads
    turned = int(size * (raw.get("partial_rotary_factor") or 1))
    queries, keys, values = [], [], []
    for position, vector in enumerate(hidden):
        if "attention.query_key_value.weight" in own:
            q, k, v = _linear(own, "attention.query_key_value", vector).split(
                [heads * size, groups * size, groups * size]
            )
        else:
            q, k, v = (_linear(own, f"self_attn.{name}_proj", vector) for name in "qkv")
        q, k, v = q.view(heads, size), k.view(groups, size), v.view(groups, size)
        for name in ("self_attn.q_norm", "attention.query_layernorm"):
            if name + ".weight" in own:
                other = name.replace("q_norm", "k_norm").replace("query", "key")
                q = torch.stack([_norm(row, own[name + ".weight"], raw["rms_norm_eps"]) for row in q])
                k = torch.stack([_norm(row, own[other + ".weight"], raw["rms_norm_eps"]) for row in k])
        queries.append(_turn(q, position, turned, raw["rope_theta"]))
        keys.append(_turn(k, position, turned, raw["rope_theta"]))
        values.append(v)
    out = []
    for q in range(len(hidden)):
        seen = [k for k in range(len(hidden)) if allowed[q][k]]
        parts = []
        for head in range(heads):
            group = head // (heads // groups)
            scores = torch.stack([queries[q][head] @ keys[k][group] / math.sqrt(size) for k in seen])
            parts.append(sum(p * values[k][group] for p, k in zip(scores.softmax(0), seen, strict=True)))
        out.append(_linear(own, "self_attn.o_proj", torch.cat(parts)))
    return out


def _turn(rows: Tensor, position: int, turned: int, theta: float) -> Tensor:
    out, half = rows.clone(), turned // 2
    for i in range(half):
        angle = position * theta ** (-2 * i / turned)
        left, right = rows[:, i], rows[:, i + half]
        out[:, i] = left * math.cos(angle) - right * math.sin(angle)
        out[:, i + half] = right * math.cos(angle) + left * math.sin(angle)
    return out


def _gated(own: State, prefix: str, vector: Tensor) -> Tensor:
    gate = own[prefix + "gate_proj.weight"] @ vector
    return own[prefix + "down_proj.weight"] @ (gate * torch.sigmoid(gate) * (own[prefix + "up_proj.weight"] @ vector))


def _feed_forward(raw: dict[str, Any], own: State, vector: Tensor) -> Tensor:
    if "mlp.gate.weight" not in own:
        return _gated(own, "mlp.", vector)
    scores, top = own["mlp.gate.weight"] @ vector, raw["num_experts_per_tok"]
    if raw["model_type"] == "llada2_moe":
        weights = torch.sigmoid(scores)
        biased = weights + own["mlp.gate.expert_bias"]
        members = biased.view(raw["n_group"], -1)
        order = sorted(range(raw["n_group"]), key=lambda g: -float(members[g].sort(descending=True).values[:2].sum()))
        open_groups, per = set(order[: raw["topk_group"]]), members.shape[1]
        candidates = [e for e in range(len(biased)) if e // per in open_groups]
        chosen = sorted(candidates, key=lambda e: -float(biased[e]))[:top]
        total = float(weights[chosen].sum()) if top > 1 else 1.0
        shares = {e: weights[e] / total * raw["routed_scaling_factor"] for e in chosen}
    else:
        weights = scores.softmax(0) + own.get("mlp.expert_bias", torch.zeros(()))
        chosen = sorted(range(len(weights)), key=lambda e: -float(weights[e]))[:top]
        renormalise = raw["model_type"] == "sdar_moe" and raw["norm_topk_prob"]
        total = float(weights[chosen].sum()) if renormalise else 1.0
        shares = {e: weights[e] / total for e in chosen}
    out = sum(share * _gated(own, f"mlp.experts.{e}.", vector) for e, share in shares.items())
    for prefix in ("mlp.shared_experts.", "shared_expert."):
        if prefix + "gate_proj.weight" in own:
            out = out + _gated(own, prefix, vector)
    return out
