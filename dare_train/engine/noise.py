"""Dropout as a function of the seed, the step and the process, instead of whatever torch's global stream holds.

A step that is done again after an interruption drops the same values; the global stream is given back as it was.
Everything else that is random in training draws from generators of its own (``dare_train.draws``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from dare_train.draws import derive, seeded


@contextlib.contextmanager
def step_noise(seed: int, step: int, process: int, device: str) -> Iterator[None]:
    """Let torch's own streams follow from ``seed``, ``step`` and ``process`` for a while."""
    number = derive(seed, "dropout", step, process)
    on_gpu = device.startswith("cuda")
    with torch.random.fork_rng(devices=[torch.device(device)] if on_gpu else []):
        torch.set_rng_state(seeded(number).get_state())
        if on_gpu:
            torch.cuda.set_rng_state(torch.Generator(device).manual_seed(number).get_state(), device)
        yield
