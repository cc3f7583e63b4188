"""The process that judges answers: a plan first, then lists of samples, one outcome back per sample.

Started by ``dare_train.rl.reward_pool``; it imports no torch and may be killed at any moment. It ends when its
connection closes, and at once when its parent is gone, whatever it was doing.

    python -m dare_train.rl.reward_worker FD
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from typing import Any

from dare_train.launcher import end_with_parent


def main() -> None:
    """Serve the connection whose descriptor is the only argument."""
    end_with_parent()
    serve(Connection(int(sys.argv[1])))


def serve(link: Connection[Any, Any]) -> None:
    """Answer until the other side is gone."""
    try:
        plan = link.recv()
        judge = plan.judge()
        link.send(None)
        while True:
            for sample in link.recv():
                link.send(plan.outcome(judge, sample))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
    except Exception as error:  # the judge cannot be made: the caller is told why, once
        link.send(error)


if __name__ == "__main__":
    main()
