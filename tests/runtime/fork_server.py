"""A process that has imported the heavy packages once and forks for every command line asked of it.

``python -m tests.runtime.fork_server opencompass`` has the evaluation side, ``... training`` has torch and the trainer.
Speaks JSON lines: ``{"argv", "cwd", "env", "out", "err", "limit_s"}`` starts ``opencompass``, ``dare-eval``,
``dare-train`` or the ``main`` of a module and is answered with ``{"pid"}``; ``{"wait": pid}`` is answered with
``{"code"}``. Each command runs in its own process group.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Sequence


def child(request: dict) -> None:
    os.setpgid(0, 0)
    signal.alarm(request.get("limit_s", 0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(request[name], os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = request["argv"]
    program = request["argv"][0]
    importlib.import_module(MAINS.get(program, program)).main()


def run(request: dict) -> None:
    import atexit
    import traceback

    code = 1
    try:
        child(request)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()  # as at the end of a process: pools of workers are closed
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


MAINS = {"dare-eval": "dare_eval.cli", "dare-train": "dare_train.cli", "opencompass": "opencompass.cli.main"}
"""Where the ``main`` of a program is; other names are those of modules."""
SHARED = (
    "alembic.command",
    "yapf",
    "dare_eval.cli",
    "dare_eval.commands",
    "dare_eval.decoding",
    "dare_eval.networks",
    "dare_eval.records",
    "dare_eval.report",
    "dare_eval.scoring",
)
KINDS = {
    "opencompass": (
        "opencompass.cli.main",
        *SHARED,
        "dare_eval.datasets",
        "dare_eval.evaluators",
        "dare_eval.inferencers",
        "dare_eval.models",
        "dare_eval.runtime",
        "tests.runtime.fakes",
    ),
    "training": (*SHARED, "dare_train"),
}

APART = (".inside", ".migrations.", "__main__")
"""Modules that only their own program imports."""


def import_all(tops: Sequence[str]) -> None:
    """Import each of ``tops`` and what lies below it."""
    for name in tops:
        top = importlib.import_module(name)
        inside = getattr(top, "__path__", []) if name.startswith("dare_") else []
        for found in pkgutil.walk_packages(inside, f"{name}."):
            if not any(part in found.name for part in APART):
                importlib.import_module(found.name)


def main() -> None:
    import torch

    import_all(KINDS[sys.argv[1]])
    gc.freeze()  # no child walks through what was imported
    torch.set_num_threads(1)
    talk = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    talk.write("ready\n")
    talk.flush()
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = {"code": os.waitstatus_to_exitcode(status)}
        else:
            pid = os.fork()
            if pid == 0:
                run(request)
            answer = {"pid": pid}
        talk.write(json.dumps(answer) + "\n")
        talk.flush()


if __name__ == "__main__":
    main()
