"""Starts a training command again in several processes on this machine, through torchrun.

Signals that ask to stop are passed on to the training processes themselves, which save a checkpoint and end at the
next step; torchrun would end them after half a minute. Several machines are started by torchrun or Slurm themselves
(docs/distributed.md); this is the one-machine shortcut.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from dare_eval.errors import IncompleteError, UsageError

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
SAID = range(2, 6)
"""Exit codes of failures that the first process has shown."""


def launch(arguments: Sequence[str], processes: int) -> None:
    """Run ``dare-train`` with ``arguments`` in ``processes`` processes.

    Exits with their code when they fail with a message; raises ``IncompleteError`` when they are gone without one,
    ``UsageError`` inside another launcher, which has started enough.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "--nproc inside processes that another launcher has started",
            seen=f"--nproc {processes}, WORLD_SIZE = {os.environ['WORLD_SIZE']}",
            remedy="leave --nproc out under torchrun and srun",
        )
    launcher = [sys.executable, "-m", "dare_train.launcher", "--standalone", f"--nproc-per-node={processes}"]
    # A session of its own: the terminal's Ctrl-C reaches the training processes through this one only.
    with subprocess.Popen([*launcher, "-m", "dare_train", *arguments], start_new_session=True) as child:
        code = _wait(child)
    if code in SAID:
        raise SystemExit(code)
    if code:
        raise IncompleteError(
            f"training in {processes} processes ended with exit code {code}",
            seen=" ".join(arguments),
            allowed="0",
            remedy="what a process wrote stands above; the same command continues from the last checkpoint",
        )


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Return the exit code of the launcher, passing on signals meanwhile."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        import psutil

        for worker in psutil.Process(child.pid).children():
            worker.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in STOPPING}
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
