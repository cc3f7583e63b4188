"""torchrun with its tongue held: a process that fails has said what is wrong, and its exit code is passed on.

    python -m dare_train.launcher --standalone --nproc-per-node=2 -m dare_train sft --config FILE

is what ``dare-train sft --config FILE --nproc 2`` runs.
"""

from __future__ import annotations

import logging


def main() -> None:
    """Run torchrun's own command line; ends with the exit code of the process that failed first."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    logging.disable(logging.ERROR)
    try:
        torchrun()
    except ChildFailedError as error:
        _, first = error.get_first_failure()
        raise SystemExit(first.exitcode if first.exitcode > 0 else 1) from None


if __name__ == "__main__":
    main()
