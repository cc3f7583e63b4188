"""A trap on the one function through which torch initialises CUDA, set where the run imports this module."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from tests.runtime.fakes import SumModel


def trap(*_: object) -> None:
    """Note the process that would have initialised CUDA."""
    with Path(os.environ["FAKE_LOG"] + ".cuda").open("a") as log:
        log.write(f"{os.getpid()}\n")


torch.cuda._lazy_init = trap


class CudaModel(SumModel):
    """Uses CUDA as a model on a GPU does, and notes its own process and the runner's."""

    def generate(self, inputs, max_out_len=None):
        torch.cuda._lazy_init()
        with Path(os.environ["FAKE_LOG"] + ".workers").open("a") as log:
            log.write(f"{os.getpid()} {os.getppid()}\n")
        return super().generate(inputs, max_out_len)
