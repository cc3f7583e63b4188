"""Networks for the decoding tests: the golden tiny models, whose logits are spread out enough to rank."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import torch

from dare_eval.networks import load_network

MODELS = Path(__file__).resolve().parents[1] / "golden" / "sampling"
TOKEN_IDS = {"mask_id": 126, "pad_id": 125, "eos_id": 125, "eot_id": 124, "bos_id": 123}


@functools.lru_cache
def tiny(family: str):
    """Return the golden tiny model of a family."""
    return load_network(str(MODELS / f"{family}_tiny"), token_ids=TOKEN_IDS)


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


def prompts(lengths=(7, 3, 12, 9, 4), seed: int = 0) -> list[list[int]]:
    """Return prompts of the given lengths."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(1, 120, (length,), generator=generator).tolist() for length in lengths]
