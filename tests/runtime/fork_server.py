"""A process that has imported OpenCompass once and forks for every command line asked of it.

Speaks JSON lines: ``{"argv", "cwd", "env", "out", "err"}`` starts ``opencompass`` or ``dare-eval`` and is answered
with ``{"pid"}``; ``{"wait": pid}`` is answered with ``{"code"}``. Each command runs in its own process group.
"""

from __future__ import annotations

import json
import os
import sys


def child(request: dict) -> None:
    os.setpgid(0, 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(request[name], os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = request["argv"]
    if request["argv"][0] == "dare-eval":
        from dare_eval.cli import main
    else:
        from opencompass.cli.main import main
    main()


def run(request: dict) -> None:
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
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


PARTS = (
    "cli",
    "commands",
    "datasets",
    "decoding",
    "evaluators",
    "inferencers",
    "models",
    "networks",
    "runtime",
    "scoring",
)


def import_everything() -> None:
    import importlib
    import pkgutil

    import opencompass.cli.main  # noqa: F401

    for part in PARTS:
        top = importlib.import_module(f"dare_eval.{part}")
        for found in pkgutil.walk_packages(getattr(top, "__path__", []), f"{top.__name__}."):
            if ".inside" not in found.name and not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    importlib.import_module("tests.runtime.fakes")


def main() -> None:
    import torch

    import_everything()
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
