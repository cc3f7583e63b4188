"""torchrun with its tongue held: a process that fails has said what is wrong, and its exit code is passed on.

It ends when the process that started it is gone, so that a killed command leaves nothing that goes on training.

    python -m dare_train.launcher --standalone --nproc-per-node=2 -m dare_train sft --config FILE

is what ``dare-train sft --config FILE --nproc 2`` runs.
"""

from __future__ import annotations

import ctypes
import logging
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run torchrun's own command line; ends with the exit code of the process that failed first."""
    end_with_parent()
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    logging.disable(logging.ERROR)
    try:
        torchrun()
    except ChildFailedError as error:
        _, first = error.get_first_failure()
        raise SystemExit(first.exitcode if first.exitcode > 0 else 1) from None
    except SignalException as error:
        raise SystemExit(128 + int(error.sigval)) from None


def end_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent is gone; torchrun answers it by ending the processes it started."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    main()
