"""The scorer of kind ``code``: extract a program from the reply, run it against the tests, report what came of it."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

from dare_eval.errors import UsageError
from dare_eval.scoring.base import Score, binary, gold_failure
from dare_eval.scoring.code import source
from dare_eval.scoring.code.checks import BadReference, Checks, checks_of, same_output
from dare_eval.scoring.code.extract import Extracted, extract
from dare_eval.scoring.code.pool import Sandbox, SandboxPool
from dare_eval.scoring.code.programs import Limits, Program, Verdict

URL_VARIABLE = "DARE_SANDBOX_URL"
OWN_ASSERTS = ("run", "drop")
_STORED_CHARS = 2000


def score_code(
    response: str,
    reference: Any,
    *,
    prompt: str = "",
    mode: str = "auto",
    limits: Limits | dict[str, Any] | None = None,
    own_asserts: str = "run",
    sandbox: Sandbox | None = None,
    **context: Any,
) -> Score:
    """Score a reply that should hold a program.

    ``reference`` and ``context`` give the tests (``checks.checks_of``). ``timeout_s`` in the context is short for the
    wall limit, which holds for each run; input/output cases are a run each. ``own_asserts="drop"`` removes asserts that
    the model wrote at the top level of its module. ``mode`` is that of ``extract``. Detail: ``status``, ``reason``,
    ``trace``, ``output``, ``tests_passed``, ``n_tests``, ``wall_s``, ``waited_s``, ``isolation``. Raises
    ``UsageError`` for a wrong setting, ``SetupError`` when no sandbox can be had; never because of what a model wrote.
    """
    if own_asserts not in OWN_ASSERTS:
        raise UsageError("own_asserts has no such value", seen=own_asserts, allowed=", ".join(OWN_ASSERTS))
    allowed = _limits(limits, context)
    try:
        checks = checks_of(reference, context)
    except BadReference as error:
        return gold_failure(reference, str(error))
    found = extract(response, prompt, checks.entry_points, mode=mode)
    n_tests = len(checks.stdin or checks.tests)
    if found.code is None:
        why = {"status": "missing_entry_point", "reason": "the reply holds no code"}
        return binary(False, None, found.rule, tests_passed=0, n_tests=n_tests, **why)
    code = source.drop_asserts(found.code) if own_asserts == "drop" else found.code
    return _run(found, code, checks, allowed, sandbox or default_sandbox(context.get("allow_unsandboxed")))


def _limits(limits: Limits | dict[str, Any] | None, context: dict[str, Any]) -> Limits:
    chosen = limits.to_dict() if isinstance(limits, Limits) else dict(limits or {})
    if context.get("timeout_s") is not None:
        chosen["wall_s"] = float(context["timeout_s"])
    return Limits.from_dict(chosen)


def _run(found: Extracted, code: str, checks: Checks, limits: Limits, sandbox: Sandbox) -> Score:
    programs = checks.programs(code, found.preamble)
    passed, wall_s, waited_s = 0, 0.0, 0.0
    for number, program in enumerate(programs):
        verdict = sandbox.run(program, _with_room(limits, checks, number))
        wall_s, waited_s = wall_s + verdict.wall_s, waited_s + verdict.waited_s
        if verdict.status == "bad_test":
            return gold_failure(checks.tests, verdict.reason)
        status, reason = _status(verdict, checks, number)
        if status != "passed":
            break
        passed += 1
    return binary(
        status == "passed",
        found.code,
        found.rule,
        status=status,
        reason=reason,
        trace=verdict.trace,
        output=verdict.output[:_STORED_CHARS],
        tests_passed=passed if checks.stdin or checks.function else verdict.tests_passed,
        n_tests=len(checks.stdin or checks.tests),
        wall_s=round(wall_s, 4),
        waited_s=round(waited_s, 4),
        isolation=verdict.isolation,
    )


def _with_room(limits: Limits, checks: Checks, number: int) -> Limits:
    """Return limits that keep enough output to compare it with what is expected."""
    if not checks.stdin:
        return limits
    needed = 2 * len(checks.stdin[number][1].encode("utf-8", "surrogatepass")) + 1000
    return Limits.from_dict({**limits.to_dict(), "output_bytes": max(limits.output_bytes, needed)})


def _status(verdict: Verdict, checks: Checks, number: int) -> tuple[str, str]:
    if checks.stdin and verdict.passed and not same_output(verdict.output, checks.stdin[number][1]):
        return "failed", f"case {number + 1} printed something else than expected"
    return verdict.status, verdict.reason


def run_code(
    code: str,
    tests: str | Sequence[str],
    *,
    entry_points: Sequence[str] = (),
    limits: Limits | None = None,
    sandbox: Sandbox | None = None,
) -> Verdict:
    """Run ``tests`` (trusted) against ``code`` (not trusted) without any extraction."""
    listed = (tests,) if isinstance(tests, str) else tuple(tests)
    program = Program(code=code, tests=listed, entry_points=tuple(entry_points))
    return (sandbox or default_sandbox()).run(program, limits or Limits())


def default_sandbox(allow_unsandboxed: bool | None = None) -> Sandbox:
    """Return the sandbox server that ``DARE_SANDBOX_URL`` names, else this process's pool."""
    url = os.environ.get(URL_VARIABLE, "")
    if url:
        from dare_eval.scoring.code.http_client import HttpSandbox

        return HttpSandbox(url)
    return _pool(allow_unsandboxed)


@functools.cache
def _pool(allow_unsandboxed: bool | None) -> SandboxPool:
    return SandboxPool(allow_unsandboxed=allow_unsandboxed)
