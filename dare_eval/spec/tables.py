"""Who reads which decoding field: families, policies, caches, parity switches, as tables.

Names only: a family's network and a policy's code are imported when somebody asks the registries for them. An
outside package adds a family or a policy through the entry points ``dare.families`` and ``dare.decoders``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from dare_eval.errors import unknown
from dare_eval.registry import Registry

FAMILIES = Registry(
    "model family",
    "dare.families",
    {
        "llada": "dare_eval.networks.families.llada:FAMILY",
        "llada_moe": "dare_eval.networks.families.llada_moe:FAMILY",
        "dream": "dare_eval.networks.families.dream:FAMILY",
        "sdar": "dare_eval.networks.families.sdar:FAMILY",
        "sdar_moe": "dare_eval.networks.families.sdar_moe:FAMILY",
        "llada2": "dare_eval.networks.families.llada2:FAMILY",
    },
    instance_of="dare_eval.networks.families.base:Family",
)
_POLICY_FOLDER = "dare_eval.decoding.policies"
POLICIES = Registry(
    "decoding policy",
    "dare.decoders",
    {
        "quota": f"{_POLICY_FOLDER}.quota:Quota",
        "random": f"{_POLICY_FOLDER}.random_order:RandomQuota",
        "entropy": f"{_POLICY_FOLDER}.quota:EntropyQuota",
        "margin": f"{_POLICY_FOLDER}.quota:MarginQuota",
        "origin": f"{_POLICY_FOLDER}.origin:Origin",
        "threshold": f"{_POLICY_FOLDER}.threshold:Threshold",
        "carry": f"{_POLICY_FOLDER}.carry:CarryOver",
        "factor": f"{_POLICY_FOLDER}.factor:Factor",
        "frechet": f"{_POLICY_FOLDER}.frechet:FrechetProfile",
        "suffix": f"{_POLICY_FOLDER}.suffix:SuffixPruning",
        "sequential": f"{_POLICY_FOLDER}.sequential:Sequential",
        "dynamic": f"{_POLICY_FOLDER}.dynamic:Dynamic",
        "eb": f"{_POLICY_FOLDER}.entropy_bound:EntropyBound",
    },
    subclass_of=f"{_POLICY_FOLDER}.base:Policy",
)

CACHES = ("none", "prefix", "dual", "block")
SCHEDULES = ("equal", "ascending")
EOS_RULES = ("none", "logits_eos_inf", "confidence_eos_eot_inf", "eoser")
EARLY_STOPS = ("none", "block", "prefix")
DTYPES = ("float32", "bfloat16", "float16", "float64")

_QUOTA = frozenset({"steps", "alg_temp", "eps"})
_EDITING = frozenset({"edit_threshold", "max_post_steps"})
# Spec fields each policy reads; setting another one of these is refused, since it would be ignored silently.
POLICY_FIELDS: dict[str, frozenset[str]] = {
    "quota": _QUOTA,
    "entropy": _QUOTA,
    "margin": _QUOTA,
    "random": frozenset({"steps", "eps"}),
    "origin": frozenset({"steps", "eps"}),
    "threshold": frozenset({"threshold"}),
    "carry": frozenset({"steps", "threshold"}),
    "factor": frozenset({"factor"}),
    "frechet": frozenset({"factor"}),
    "suffix": frozenset({"threshold"}),
    "sequential": frozenset({"steps"}),
    "dynamic": frozenset({"steps", "threshold", "min_transfer"}) | _EDITING,
    "eb": frozenset({"threshold"}),
}
# Policies that rank proposals by their probability: the only ones an EOS rule on the confidence makes sense for.
CONFIDENCE_POLICIES = ("quota", "threshold", "factor", "frechet", "carry", "suffix", "dynamic")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyTraits:
    """What a family's decoding allows and assumes; the network's own switches stand in its config."""

    caches: tuple[str, ...]
    fields: frozenset[str]
    """Optional fields the family reads (of those that only some families read)."""
    absolute_grid: bool = False
    """Blocks are counted from the first prompt token, so gen_length need not be a multiple of block_length."""
    block_length: int | None = None
    early_stop: str = "none"
    parity: tuple[str, ...] = ()


_MASKED = FamilyTraits(
    caches=CACHES,
    fields=frozenset({"cfg_scale", "eos_gamma", "refresh", "schedule"}),
    parity=("idle_cached_pass", "eos_kept_when_sampling"),
)
_DREAM = FamilyTraits(
    caches=("none", "prefix", "dual"),
    fields=frozenset({"cfg_scale", "eos_gamma", "refresh", "alg_temp", "eps"}),
    parity=("zero_commit_steps",),
)
_SDAR = FamilyTraits(
    caches=("none", "block"),
    fields=frozenset(),
    absolute_grid=True,
    block_length=4,
    early_stop="block",
    parity=("overwrite_committed", "truncated_confidence"),
)
_LLADA2 = dataclasses.replace(
    _SDAR,
    fields=_EDITING,
    block_length=32,
    parity=("truncated_confidence", "additive_block_mask", "sample_at_zero_temperature"),
)
FAMILY_TRAITS = {
    "llada": _MASKED,
    "llada_moe": _MASKED,
    "dream": _DREAM,
    "sdar": _SDAR,
    "sdar_moe": _SDAR,
    "llada2": _LLADA2,
}
PARITY_SWITCHES = {
    "zero_commit_steps": "Dream: a step's quota may be rounded to zero tokens",
    "overwrite_committed": "SDAR: a quota above the number of masks overwrites prompt and committed tokens",
    "truncated_confidence": "SDAR, LLaDA2: confidence after top-k and top-p truncation",
    "additive_block_mask": "LLaDA2.1 as bundled: the block mask is added as 0/1 and hides nothing",
    "sample_at_zero_temperature": "LLaDA2.0: temperature 0 draws from the untempered softmax",
    "idle_cached_pass": "Fast-dLLM: one cached pass per block even when the first pass filled it",
    "eos_kept_when_sampling": "LLaDA: confidence_eos_eot_inf spares EOS when temperature is above 0",
}
FLOAT_FIELDS = (
    "threshold",
    "factor",
    "temperature",
    "top_p",
    "alg_temp",
    "eps",
    "cfg_scale",
    "edit_threshold",
    "eos_gamma",
)
POLICY_GUARDED = ("steps", "threshold", "factor", "alg_temp", "eps", "min_transfer", "edit_threshold", "max_post_steps")
FAMILY_GUARDED = (
    "alg_temp",
    "eps",
    "edit_threshold",
    "max_post_steps",
    "eos_gamma",
    "refresh",
    "cfg_scale",
    "schedule",
)


def family_traits(family: str) -> FamilyTraits:
    """Return the traits of ``family``; one of an outside package says in ``decodes_like`` whose it shares."""
    if isinstance(family, str) and family in FAMILY_TRAITS:
        return FAMILY_TRAITS[family]
    if not isinstance(family, str) or family not in FAMILIES:
        raise unknown("model family", family, FAMILIES.names())
    return FAMILY_TRAITS[getattr(FAMILIES.get(family), "decodes_like", "llada")]


def policy_fields(policy: str) -> frozenset[str]:
    """Return the fields a policy reads; one of an outside package declares them as ``fields`` of its class."""
    if not isinstance(policy, str):
        raise unknown("decoding policy", policy, POLICIES.names())
    if policy in POLICY_FIELDS:
        return POLICY_FIELDS[policy]
    return frozenset(getattr(POLICIES.get(policy), "fields", ()))
