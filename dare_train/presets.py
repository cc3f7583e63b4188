"""Named objectives: which noise, weight and normaliser a published trainer uses.

Where implementations of one idea disagree, the first name of a family is the one to follow and the others are
kept under their own name, so that a published number can be trained for as it was made. Values set in the
config win over the preset's. No torch here.
"""

from __future__ import annotations

from dare_eval.errors import UsageError, unknown
from dare_train.config import ObjectiveSettings

_FULL = {
    "time_low": 1e-3,
    "time_high": 1.0,
    "time_per": "sequence",
    "schedule": "linear",
    "eos_as_one": False,
    "weight": "inverse_rate",
}

PRESETS: dict[str, dict[str, object]] = {
    # arXiv 2502.09992, guideline: each row by its answer length, then the mean over rows.
    "llada": {**_FULL, "normaliser": "sequence"},
    # d1's SFT trainer: one sum over the batch, divided by its answer tokens.
    "d1": {**_FULL, "normaliser": "batch_tokens"},
    # Mean cross entropy of masked tokens; the bound is reweighted, small models learn faster.
    "uniform": {**_FULL, "weight": "uniform", "normaliser": "masked_tokens"},
    # Dream's own weighting: masked tokens count by how close unmasked context is.
    "dream": {**_FULL, "weight": "cart", "cart_p": 0.3, "normaliser": "batch_tokens"},
    # 1/t divided once more by the number of masked tokens, which weighs by 1/t^2: biased, kept for comparison.
    "llada_dare": {**_FULL, "normaliser": "masked_tokens"},
    "dream_dare": {**_FULL, "time_low": 0.0, "normaliser": "masked_tokens"},
    # Block families: one forward over [noisy | clean].
    "bd3lm": {**_FULL, "normaliser": "batch_tokens", "block_length": 4},
    "sdar": {**_FULL, "normaliser": "batch_tokens", "block_length": 4},
    "llada2": {
        **_FULL,
        "time_low": 0.3,
        "time_high": 0.8,
        "weight": "uniform",
        "normaliser": "masked_tokens",
        "block_length": 32,
    },
}
FAMILY_PRESETS = {
    "llada": "llada",
    "llada_moe": "llada",
    "dream": "dream",
    "sdar": "sdar",
    "sdar_moe": "sdar",
    "llada2": "llada2",
}


def resolve_objective(settings: ObjectiveSettings, family: str, block_length: int | None) -> ObjectiveSettings:
    """Return ``settings`` with every unset value taken from its preset.

    ``family`` decides what 'auto' means, and ``block_length`` (of the network, None when it attends in both
    directions) wins over the preset's. Raises ``UsageError`` for an unknown preset and for a block objective on a
    network that is not block-causal, or the reverse.
    """
    name = FAMILY_PRESETS.get(family, "llada") if settings.preset == "auto" else settings.preset
    if name not in PRESETS:
        raise unknown("objective preset", name, ("auto", *PRESETS))
    values = dict(PRESETS[name])
    if "block_length" in values and block_length:
        values["block_length"] = block_length
    values.update({key: value for key, value in settings.model_dump().items() if value is not None and key != "preset"})
    found = ObjectiveSettings.model_validate({**values, "preset": name})
    _check(found, family, block_length)
    return found


def _check(found: ObjectiveSettings, family: str, block_length: int | None) -> None:
    if (found.block_length is None) != (block_length is None):
        wanted = "a block preset (sdar, llada2)" if block_length else "a preset without blocks (llada, dream, uniform)"
        raise UsageError(
            f"objective '{found.preset}' does not fit a network of family '{family}'",
            seen=f"objective.block_length = {found.block_length}, the network's = {block_length}",
            allowed=wanted,
            remedy="objective.preset = auto",
        )
    if found.block_length != block_length:
        raise UsageError(
            "the loss must use the block length that the network attends with",
            seen=f"objective.block_length = {found.block_length}",
            allowed=str(block_length),
        )
    if found.time_per == "block" and found.block_length is None:
        raise UsageError("objective.time_per = block needs a block objective", remedy="objective.time_per = sequence")
    low, high = found.time_low or 0.0, found.time_high or 1.0
    if low >= high:
        raise UsageError("objective.time_low must be below objective.time_high", seen=f"{low} and {high}")
