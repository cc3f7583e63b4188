"""Known programs with known verdicts, run before anything is scored: a sandbox that misjudges them scores nothing."""

from __future__ import annotations

from collections.abc import Callable

from dare_eval.errors import SetupError
from dare_eval.scoring.code.programs import Limits, Program, Verdict

_TEST = "assert f(1) == 2"
_KNOWN = (
    ("a right program", "def f(x):\n    return x + 1", "passed"),
    ("a wrong program", "def f(x):\n    return x", "failed"),
    ("an object equal to everything", "class A:\n    __eq__ = lambda s, o: True\ndef f(x):\n    return A()", "failed"),
    ("an exit before the tests", "import os\nos._exit(0)", "exited"),
    ("a program without the function", "def g(x):\n    return x + 1", "missing_entry_point"),
    ("an endless loop", "def f(x):\n    while True:\n        pass", "timeout"),
)
_LIMITS, _SHORT = Limits(wall_s=30.0), Limits(wall_s=0.3)


def check(run: Callable[[Program, Limits], Verdict]) -> None:
    """Run the known programs through ``run``; raises ``SetupError`` when a verdict is not the known one."""
    for what, code, status in _KNOWN:
        program = Program(code=code, tests=(_TEST,), entry_points=("f",))
        verdict = run(program, _SHORT if status == "timeout" else _LIMITS)
        if verdict.status != status:
            raise SetupError(
                f"the sandbox misjudged {what}: no program is scored",
                seen=f"{verdict.status} {verdict.reason}".strip(),
                allowed=status,
                remedy="docs/sandbox.md lists what the sandbox needs from the machine",
            )
