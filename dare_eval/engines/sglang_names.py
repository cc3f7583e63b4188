"""Names that SGLang's plugin and its clients share; no engine, no torch."""

from __future__ import annotations

VERSION = "0.5.23"
"""Release that everything here is held against."""
ALGORITHM = "DareLowConfidence"
"""Our algorithm in SGLang's registry."""
ALL_TOKENS = 1 << 30
"""``top_k`` of a request that keeps all."""
STEP_MAPS = "step_maps"
"""1-based step, within its block, that committed each visible token."""
REPLAY_TOKENS, REPLAY_STEPS = "dllm_replay_token_ids", "dllm_replay_step_maps"
"""Response tokens and their steps up to the end of the last block, the unseen tail included."""
STOP_LENGTH, CONTRACT = "dllm_stop_length", "dllm_replay_contract_version"
CONTRACT_VERSION = 1
RULES = "dare_rules"
"""The rules by which a reply was decoded (``block_rules.rules_text``)."""
WHOLE = frozenset({REPLAY_TOKENS, REPLAY_STEPS, STOP_LENGTH, CONTRACT, RULES})
"""Keys that belong to the request as a whole and must not be cut to the visible tokens."""
ATTEMPT = "#"
"""What follows it in a request's name makes the name unique and decides nothing."""
