"""No hostile program passes, survives, reads or writes outside; the same worker judges rightly straight after each."""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from dare_eval.scoring.code import Limits, Program, Verdict
from dare_eval.scoring.code.worker import Worker
from tests.scoring.code.attacks import ALL

pytestmark = pytest.mark.xdist_group("sandbox")

TOKEN = secrets.token_hex(8)
PROJECT = Path(__file__).resolve().parents[3]
LIMITS = Limits(wall_s=1.0, processes=16, memory_mib=300, total_memory_mib=300, box_mib=32)
GOOD = Program(code="def f(x):\n    return x + 1", tests=("assert f(1) == 2",), entry_points=("f",))
SERIOUS = {
    "sees the machine", "read the memory", "traced another", "changed a mount", "made a namespace", "changed the root",
    "made a device", "reached the kernel",
}  # fmt: skip


@pytest.fixture(scope="module")
def worker(private_sandbox):
    os.environ["DARE_TEST_SECRET"] = f"SECRET_{TOKEN} = 1"
    made = Worker(private=True)
    yield made
    made.close()
    del os.environ["DARE_TEST_SECRET"]


class Listener:
    """Servers of this machine that a program must not reach; they count who did."""

    def __init__(self) -> None:
        self.name, self.reached = f"dare-test-{TOKEN}", 0
        self.sockets = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)]
        self.sockets[1].bind("\0" + self.name)
        self.sockets[1].listen()
        self.port = self.sockets[0].getsockname()[1]
        for one in self.sockets:
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    def serve(self, listening: socket.socket) -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            self.reached += 1
            peer.sendall(b"1")
            peer.close()


@pytest.fixture(scope="module")
def listener():
    made = Listener()
    with socket.create_connection(("127.0.0.1", made.port), timeout=5) as own:
        assert own.recv(9) == b"1"  # it does serve those who reach it
    made.reached = 0
    yield made
    for one in made.sockets:
        one.close()


def run(worker: Worker, listener: Listener, code: str, limits: Limits = LIMITS) -> Verdict:
    filled = {"TOKEN": TOKEN, "PORT": listener.port, "SOCKET": listener.name, "PROJECT": PROJECT, "PARENT": os.getpid()}
    for name, value in filled.items():
        code = code.replace("{" + name + "}", str(value))
    secret = secrets.randbelow(10**12) + 10**9
    tests = (f"SECRET_{TOKEN} = {secret}\nassert f(1) == SECRET_{TOKEN}",)
    return worker.run(Program(code=code, tests=tests, entry_points=("f",)), limits)


def below(worker: Worker) -> list[psutil.Process]:
    """Return the processes below the fork server itself (``unshare`` and the zygote are it)."""
    return psutil.Process(worker.pid).children(recursive=True)[1:]


@pytest.mark.parametrize(
    ("group", "name", "code"), ALL, ids=[f"{group}-{name}".replace(" ", "_") for group, name, _ in ALL]
)
def test_hostile_program(worker, listener, group, name, code):
    box_parents = {Path(folder) for folder in ("/", "/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir(), Path.cwd())}
    before = {folder: set(folder.iterdir()) for folder in (PROJECT, PROJECT / "tests" / "scoring" / "code")}
    verdict = run(worker, listener, code)
    assert not verdict.passed
    assert verdict.status in {"failed", "timeout", "exited", "memory"} or verdict.status.startswith("error:")
    assert not any(sign in verdict.reason for sign in SERIOUS), verdict.reason
    assert verdict.wall_s - verdict.waited_s < LIMITS.wall_s + 1.5
    assert verdict.wall_s < LIMITS.longest_s + 1.5
    assert len(verdict.output) <= LIMITS.output_bytes
    assert len(verdict.trace) <= 2500
    assert len(verdict.reason) <= 600
    assert below(worker) == []
    assert listener.reached == 0
    written = [path for folder in box_parents | set(before) for path in folder.glob(f"*evil-{TOKEN}*")]
    assert written == []
    assert all(set(folder.iterdir()) - old <= {folder / "__pycache__"} for folder, old in before.items())
    assert worker.run(GOOD, Limits()).status == "passed", "the worker is of no use after the attack"


STATUS = {
    "one big block": "memory",
    "a growing list": "memory",
    "memory files": "error:PermissionError",
    "sys.exit(0)": "exited",
    "os._exit(0)": "exited",
    "sys.exit(0) in the call": "exited",
    "fork bomb that ignores failures": "failed",
    "segmentation fault": "exited",
    "equal to everything": "failed",
    "KeyboardInterrupt": "error:KeyboardInterrupt",
    "a huge file": "error:OSError",
    "runs a shell": "error:FileNotFoundError",
    "connects to the machine": "error:OSError",
    "strange messages": "exited",
    "an answer that holds itself": "error:RecursionError",
    "benchmark packages": "error:ModuleNotFoundError",
}
TIGHT_STATUS = {"sleep": "timeout", "loop in C": "timeout", "ignores every signal": "timeout"}


def test_the_status_says_what_happened(worker, listener):
    codes = {name: code for _, name, code in ALL}
    roomy = Limits(wall_s=20.0, processes=16, memory_mib=300, total_memory_mib=1500)
    assert {name: run(worker, listener, codes[name], roomy).status for name in STATUS} == STATUS
    assert {name: run(worker, listener, codes[name]).status for name in TIGHT_STATUS} == TIGHT_STATUS
    patient = Limits(wall_s=20.0, processes=16, memory_mib=300, total_memory_mib=400)
    assert run(worker, listener, codes["memory in many children"], patient).status == "memory"


def test_the_attacks_are_attacks():
    assert len(ALL) >= 40
    assert len({name for _, name, _ in ALL}) == len(ALL)
    for _, name, code in ALL:
        compile(code, name, "exec")


def test_nothing_is_left_when_the_worker_closes(private_sandbox, listener):
    worker = Worker(private=True)
    run(worker, listener, {name: code for _, name, code in ALL}["daemon"])
    server = psutil.Process(worker.pid)
    family = [server, *server.children(recursive=True)]
    assert len(family) == 2
    worker.close()
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []
    assert not [p for p in Path(tempfile.gettempdir()).glob("dare-root-*") if any(p.iterdir())]
