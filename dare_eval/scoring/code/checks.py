"""What decides a benchmark item: HumanEval and EvalPlus scripts, MBPP asserts, LiveCodeBench's input/output cases.

Reads a reference and the context beside it into ``Checks``; ``Checks.programs`` joins them with a model's code into
what the sandbox runs. Nothing here runs anything.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from dare_eval.scoring.code.parsing import parse
from dare_eval.scoring.code.programs import Program
from dare_eval.scoring.code.source import Reader

_SAME = """
def _same(found, expected):
    if isinstance(found, (list, tuple)) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_same, found, expected))
    return found == expected
"""
_CHECK_DEFINED, _CHECK_CALLED = re.compile(r"^def check\(", re.MULTILINE), re.compile(r"^check\(", re.MULTILINE)


class BadReference(Exception):
    """The item's tests cannot be used; the item is counted apart, not as wrong."""


@dataclass(frozen=True, slots=True)
class Checks:
    """The tests of an item. ``stdin`` is filled for scripts; the other fields are for modules."""

    tests: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    """Names of which the program must define one."""
    stdin: tuple[tuple[str, str], ...] = ()
    """Pairs of input and expected output, each a run of its own."""
    function: str = ""
    """Name of a function under test that may also be a method of a class ``Solution``."""

    def programs(self, code: str, preamble: str = "") -> list[Program]:
        """Return what must be run, in order, for ``code`` to be right."""
        if self.stdin:
            return [Program(code=code, stdin=given) for given, _ in self.stdin]
        if not self.function:
            return [Program(code=code, tests=self.tests, setup=_given(preamble), entry_points=self.entry_points)]
        in_class = Reader().defines(code, ["Solution"])
        bind = f"_function = Solution().{self.function}" if in_class else f"_function = {self.function}"
        names = ("Solution",) if in_class else (self.function,)
        setup = (*_given(preamble), _SAME)
        return [Program(code=code, tests=(bind, test), setup=setup, entry_points=names) for test in self.tests]


def _given(preamble: str) -> tuple[str, ...]:
    return (preamble,) if preamble else ()


def checks_of(reference: Any, context: dict[str, Any]) -> Checks:
    """Return the checks of an item; raises ``BadReference``.

    ``reference`` is a script, a list of asserts, a list of cases, or a mapping (or its JSON) with any of the keys that
    the context may have as well: ``test``, ``test_list``, ``test_setup_code``, ``test_imports``, ``cases``, ``inputs``,
    ``outputs``, ``fn_name``, ``entry_point``.
    """
    given = {**_as_mapping(reference), **{key: value for key, value in context.items() if value}}
    if given.get("cases") or given.get("inputs"):
        return _of_cases(given)
    setup = [str(line) for line in given.get("test_imports") or []]
    if str(given.get("test_setup_code") or "").strip():
        setup.append(str(given["test_setup_code"]))
    listed = given.get("test_list") or []
    tests = [listed] if isinstance(listed, str) else [str(test) for test in listed]
    if not tests and str(given.get("test") or "").strip():
        tests = _script(str(given["test"]), given)
    if not tests:
        raise BadReference("no test, test_list or cases")
    name = str(given.get("entry_point") or "")
    names = (name,) if name else _called_by_asserts("\n".join(tests))
    return Checks(tests=(*setup, *tests), entry_points=names)


def _as_mapping(reference: Any) -> dict[str, Any]:
    if isinstance(reference, str) and reference.lstrip()[:1] in ("{", "["):
        try:
            reference = json.loads(reference)
        except ValueError:
            return {"test": reference}
    if isinstance(reference, dict):
        return {str(key): value for key, value in reference.items()}
    if isinstance(reference, list | tuple):
        return {"test_list" if all(isinstance(item, str) for item in reference) else "cases": list(reference)}
    return {"test": str(reference)} if reference else {}


def _script(script: str, given: dict[str, Any]) -> list[str]:
    """Return a script and, where it only defines ``check(candidate)``, the call of it."""
    if not _CHECK_DEFINED.search(script) or _CHECK_CALLED.search(script):
        return [script]
    if not given.get("entry_point"):
        raise BadReference("the test defines check(candidate) but no entry_point is given")
    return [script, f"check({given['entry_point']})"]


def _called_by_asserts(source: str) -> tuple[str, ...]:
    """Return the function that most asserts call, of each assert the outermost; none when it is not to be seen."""
    try:
        tree = parse(source)
    except SyntaxError as error:
        raise BadReference(f"the test is not Python: {error}") from error
    counted: Counter[str] = Counter()
    builtin: Counter[str] = Counter()
    known = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Assert)):
        functions = [call.func for call in ast.walk(node) if isinstance(call, ast.Call)]
        calls = [function.id for function in functions if isinstance(function, ast.Name)]
        counted.update([name for name in calls if not hasattr(builtins, name) and name not in known][:1])
        builtin.update([name for name in calls if hasattr(builtins, name)][:1])
    best = counted or builtin  # MBPP 126 asks for a function called "sum"
    return (best.most_common(1)[0][0],) if best else ()


def _of_cases(given: dict[str, Any]) -> Checks:
    pairs = _pairs(given)
    name = str(given.get("fn_name") or "")
    if not name:
        return Checks(stdin=tuple((str(stdin), str(expected)) for stdin, expected in pairs))
    if not name.isidentifier():
        raise BadReference(f"fn_name {name!r} is no name")
    tests = tuple(_function_test(stdin, expected) for stdin, expected in pairs)
    return Checks(tests=tests, entry_points=("Solution", name), function=name)


def _pairs(given: dict[str, Any]) -> list[tuple[Any, Any]]:
    try:
        if given.get("cases"):
            cases = json.loads(given["cases"]) if isinstance(given["cases"], str) else given["cases"]
            return [(case["input"], case["output"]) for case in cases]
        return list(zip(given["inputs"], given["outputs"], strict=True))
    except (KeyError, TypeError, ValueError) as error:
        raise BadReference(f"cases without input and output: {error}") from error


def _function_test(stdin: Any, expected: Any) -> str:
    """Return the assert of one function case: each line of its input is one argument in JSON."""
    try:
        lines = stdin.split("\n") if isinstance(stdin, str) else None
        values = list(stdin) if lines is None else [json.loads(line) for line in lines if line.strip()]
        result = json.loads(expected) if isinstance(expected, str) else expected
    except (TypeError, ValueError) as error:
        raise BadReference(f"a function case is not JSON: {error}") from error
    return f"assert _same(_function(*{values!r}), {result!r})"


def same_output(found: str, expected: str) -> bool:
    """Compare printed output line by line without trailing blanks, else token by token with numbers by value."""
    lines, wanted = ([line.rstrip() for line in text.rstrip().split("\n")] for text in (found, expected))
    if lines == wanted:
        return True
    tokens, others = found.split(), expected.split()
    return len(lines) == len(wanted) and len(tokens) == len(others) and all(map(_same_token, tokens, others))


def _same_token(found: str, expected: str) -> bool:
    if found == expected:
        return True
    try:
        return Decimal(found) == Decimal(expected)
    except InvalidOperation:
        return False
