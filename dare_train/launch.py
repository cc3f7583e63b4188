"""Starts a training command again in several processes on this machine, through torchrun.

Several machines are started by torchrun or Slurm themselves (docs/training.md); this is the one-machine shortcut.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from dare_eval.errors import IncompleteError


def launch(arguments: Sequence[str], processes: int) -> None:
    """Run ``dare-train`` with ``arguments`` in ``processes`` processes; raises ``IncompleteError`` when it fails."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run([*launcher, "-m", "dare_train", *arguments], check=False)
    if done.returncode:
        raise IncompleteError(
            f"training in {processes} processes ended with exit code {done.returncode}",
            seen=" ".join(arguments),
            remedy="the first process says above what went wrong; the same command continues from the last checkpoint",
        )
