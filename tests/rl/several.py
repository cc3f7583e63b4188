"""Trains several short runs one after the other in however many processes torchrun started (one start for all)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from rich.console import Console

import dare_train.rl.config  # noqa: F401  - makes the verb known
from dare_train.algorithms.build import METHODS
from dare_train.config import VERBS
from dare_train.engine.world import leave_world
from dare_train.run import run
from dare_train.settings import validate


def main() -> None:
    """Read a list of settings from the file named on the command line and train each."""
    torch.set_num_threads(1)
    for record in json.loads(Path(sys.argv[1]).read_text()):
        run(validate(VERBS["rl"], record), METHODS["rl"], Console(quiet=True))
    leave_world()


if __name__ == "__main__":
    main()
