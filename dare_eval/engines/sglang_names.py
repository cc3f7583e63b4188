"""Names that SGLang's plugin and its clients share; no engine, no torch."""

from __future__ import annotations

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
WHOLE = frozenset({REPLAY_TOKENS, REPLAY_STEPS, STOP_LENGTH, CONTRACT})
"""Keys that belong to the request as a whole and must not be cut to the visible tokens."""
