"""Cases of code_extraction and code_execution: every line, and every further line dropped in."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from dare_eval.scoring import score
from dare_eval.scoring.code import Limits, SandboxPool, run_code
from tests.cases.case_lines import ids, lines

pytestmark = pytest.mark.xdist_group("sandbox")

EXTRACTION = lines("code_extraction")
EXECUTION = lines("code_execution")


@pytest.mark.parametrize("case", EXTRACTION, ids=ids(EXTRACTION))
def test_code_extraction(case):
    given, expected = case["input"], case["expected"]
    context = {key: value for key, value in given.items() if key not in ("response", "test")}
    found = score("code", given["response"], given["test"], **context)
    assert found.correct is expected["passed"], found
    assert found.value == float(expected["passed"])
    assert expected.get("status", found.detail["status"]) == found.detail["status"]
    assert expected.get("rule", found.rule) == found.rule


@pytest.fixture(scope="module")
def pool():
    with SandboxPool(workers=1) as made:
        made.run_all([], Limits())
        yield made


@pytest.mark.parametrize("case", EXECUTION, ids=ids(EXECUTION))
def test_code_execution(case, pool, monkeypatch, tmp_path):
    given, expected = case["input"], case["expected"]
    monkeypatch.chdir(tmp_path)
    run_code("def f(x):\n    return x", "assert f(1) == 1", sandbox=pool)  # the pool is up: only the program is timed
    servers = set(psutil.Process().children(recursive=True))
    started = time.monotonic()
    verdict = run_code(given["code"], given["test"], limits=Limits(wall_s=given["timeout_s"]), sandbox=pool)
    assert time.monotonic() - started - verdict.waited_s < expected.get("max_wall_s", given["timeout_s"] + 3)
    assert verdict.passed is expected["passed"], verdict
    wanted = expected["status"]
    assert verdict.status in ([wanted] if isinstance(wanted, str) else wanted), verdict
    assert len(verdict.output.encode()) <= expected.get("max_stored_output_bytes", 100_000)
    assert set(psutil.Process().children(recursive=True)) <= servers
    assert list(Path.cwd().iterdir()) == []
