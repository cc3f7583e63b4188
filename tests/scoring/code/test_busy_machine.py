"""Verdicts do not depend on what else the machine does: time without a CPU is not the program's, sleep is."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from typing import ClassVar

import psutil
import pytest

from dare_eval.errors import UsageError
from dare_eval.scoring.code import Limits, Program
from dare_eval.scoring.code.inside import watch
from dare_eval.scoring.code.inside.clock import Clock
from dare_eval.scoring.code.worker import Worker

pytestmark = pytest.mark.xdist_group("sandbox")

WORKS = """
import time
def f():
    until = time.process_time() + 0.5
    while time.process_time() < until:
        pass
    return 1
"""
HOGS = 5


class Fake:
    """A wall clock that a test moves, and a kernel that knows what share of the time the program had no CPU."""

    def __init__(self, limit_s=1.0, patience=7.0, share=0.0):
        self.time, self.share, self.asked = 100.0, share, 0
        self.clock = Clock({"wall_s": limit_s, "patience": patience}, self.starved, lambda: self.time)

    def starved(self, wall_s):
        self.asked += 1
        return self.share * wall_s

    def ends_after(self) -> float:
        """Poll as the zygote does and return the wall time at which nothing is left."""
        while left_s := self.clock.left_s():
            self.time += min(0.01, left_s)
        return self.clock.wall_s()


@pytest.mark.parametrize(("share", "end_s"), [(0.0, 1.0), (0.5, 2.0), (0.75, 4.0), (0.99, 8.0), (1.0, 8.0)])
def test_the_end_comes_later_by_the_time_without_a_cpu_and_never_after_the_cap(share, end_s):
    assert Fake(share=share).ends_after() == pytest.approx(end_s, abs=0.02)


def test_without_patience_every_second_counts():
    fake = Fake(share=0.9, patience=0.0)
    assert fake.ends_after() == pytest.approx(1.0, abs=0.01)
    assert (fake.asked, fake.clock.waited_s) == (0, 0.0)


def test_nobody_asks_the_kernel_before_the_limit():
    fake = Fake(share=0.9)
    fake.time += 0.9
    assert fake.clock.left_s() == pytest.approx(0.1)
    assert fake.asked == 0
    fake.time += 0.2
    assert fake.clock.left_s() == pytest.approx(1.0 - 0.1 * 1.1)
    assert fake.asked == 1


def test_patience_is_a_limit_like_the_others():
    assert Limits(wall_s=2.0, patience=0.0).longest_s == 2.0
    assert Limits(wall_s=2.0).longest_s == 16.0
    with pytest.raises(UsageError, match="patience"):
        Limits(patience=-1.0)


@contextlib.contextmanager
def crowded(worker, hogs=HOGS):
    """Keep a fork server and ``hogs`` endless loops on one core, each in a session of its own."""
    core = min(os.sched_getaffinity(0))
    for process in (psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)):
        os.sched_setaffinity(process.pid, {core})
    loop = f"import os; os.sched_setaffinity(0, {{{core}}}); print(flush=True)\nwhile True: pass"
    started = [
        subprocess.Popen([sys.executable, "-S", "-c", loop], stdout=subprocess.PIPE, start_new_session=True)
        for _ in range(hogs)
    ]
    try:
        for one in started:
            one.stdout.readline()
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()
            one.stdout.close()


@pytest.fixture
def worker(private_sandbox):
    made = Worker(private=True)
    yield made
    made.close()


def run(worker, code, **limits):
    return worker.run(Program(code=code, tests=("assert f() == 1",), entry_points=("f",)), Limits(**limits))


def test_a_starved_program_has_its_whole_time(worker):
    with crowded(worker):
        patient = run(worker, WORKS, wall_s=1.0)
        strict = run(worker, WORKS, wall_s=1.0, patience=0.0)
    assert strict.status == "timeout", "the machine is not busy enough for this test to say anything"
    assert patient.status == "passed", patient
    assert patient.wall_s > 1.0
    assert 0.0 < patient.waited_s < patient.wall_s
    assert (strict.waited_s, strict.wall_s) == (0.0, pytest.approx(1.0, abs=0.5))


def test_a_sleeping_program_is_ended_on_time_however_busy_the_machine_is(worker):
    with crowded(worker):
        started = time.monotonic()
        verdict = run(worker, "import time\ndef f():\n    time.sleep(60)", wall_s=1.0)
    assert verdict.status == "timeout"
    assert verdict.wall_s - verdict.waited_s == pytest.approx(1.0, abs=0.3)
    assert time.monotonic() - started < 5.0


def test_an_endless_program_ends_at_the_cap_at_the_latest(worker):
    with crowded(worker):
        verdict = run(worker, "def f():\n    while True:\n        pass", wall_s=0.3, patience=2.0)
    assert verdict.status == "timeout"
    assert verdict.wall_s == pytest.approx(0.9, abs=0.4)


class Tree(watch.Family):
    """Processes by name: parent, seconds waited for a CPU, CPU seconds. The zygote is 1, the judge 2, the program 3."""

    processes: ClassVar[dict[str, tuple[str, float, float]]] = {"2": ("1", 0.5, 0.1), "3": ("2", 2.0, 0.4)}

    def members(self):
        yield from self.processes

    def kill(self):
        """Nothing runs."""


def tree(monkeypatch, **more) -> Tree:
    family = Tree()
    family.processes = {**Tree.processes, **more}
    for place, name in enumerate(("_parent", "_waited_s", "_cpu_s")):
        monkeypatch.setattr(watch, name, lambda process, place=place: family.processes[process][place])
    return family


def test_judge_and_program_wait_one_after_the_other(monkeypatch):
    assert tree(monkeypatch).starved_s(3.5) == pytest.approx(2.5)
    assert tree(monkeypatch).starved_s(2.0) == pytest.approx(1.5), "no more than the time without their CPU seconds"


def test_a_program_that_crowds_itself_out_gains_nothing(monkeypatch):
    idle = {str(n): ("3", 5.0, 0.0) for n in range(4, 8)}
    assert tree(monkeypatch, **idle).starved_s(3.5) == pytest.approx(2.5), "its own processes' waiting does not count"
    busy = {str(n): ("3", 5.0, 1.0) for n in range(4, 8)}
    assert tree(monkeypatch, **busy).starved_s(3.5) == 0.0, "two cores were theirs"
