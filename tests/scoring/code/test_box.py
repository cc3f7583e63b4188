"""One program's folder is empty for the next, whatever was done to it."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from dare_eval.scoring.code import Limits, Program
from dare_eval.scoring.code.worker import Worker

pytestmark = pytest.mark.xdist_group("sandbox")

LOOK = """
import os
def f():
    about = os.stat(".")
    room = os.statvfs(".")
    return [os.getcwd(), os.environ["HOME"], sorted(os.listdir(".")), os.listxattr("."), oct(about.st_mode)[-4:],
            room.f_blocks * room.f_bsize >> 20, room.f_files, sorted(os.listdir("/proc"))]
"""
TOUCHES = {
    "a file": "open('left', 'w').write('answer')",
    "a file in /tmp": "open('/tmp/left', 'w').write('answer')",
    "a hidden folder": "os.mkdir('.left')",
    "a socket": "import socket\nsocket.socket(socket.AF_UNIX).bind('left')",
    "a link": "os.symlink('/usr', 'left')",
    "other rights": "os.chmod('.', 0)",
    "an attribute": "os.setxattr('.', 'user.left', b'answer')",
    "a deep tree": "for _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')",
    "a full disk": "open('left', 'wb').write(bytes(14 << 20))\nopen('more', 'wb').write(bytes(14 << 20))",
    "all inodes": "for n in range(5000):\n    open(str(n), 'w')",
    "a file held open": "held = open('left', 'w')\nheld.write('answer')\nos.unlink('left')",
}


@pytest.fixture(scope="module")
def worker(private_sandbox):
    made = Worker(private=True)
    yield made
    made.close()


def look(worker, **limits):
    program = Program(code=LOOK, tests=("raise LookupError(f())",), entry_points=("f",))
    return worker.run(program, Limits(**limits)).reason


def seen(size_mib=64):
    return str(["/box", "/box", [], [], "0700", size_mib, 4096, []])


@pytest.mark.parametrize("touch", TOUCHES)
def test_what_a_program_leaves_is_not_there_for_the_next(worker, touch):
    body = "".join(f"    {line}\n" for line in TOUCHES[touch].split("\n"))
    code = f"import os\ndef f():\n{body}    return 1"
    verdict = worker.run(Program(code=code, tests=("f()",), entry_points=("f",)), Limits())
    assert verdict.status in ("passed", "error:OSError"), verdict
    assert look(worker) == seen()


def test_the_box_has_the_size_that_is_asked_for(worker):
    assert [look(worker, box_mib=size) for size in (8, 8, 64, 32)] == [seen(8), seen(8), seen(64), seen(32)]


def test_a_killed_program_leaves_nothing_and_no_descriptors_pile_up(worker):
    code = "import os\nopen('left', 'w').write('x')\ndef f():\n    while True:\n        pass"
    program = Program(code=code, tests=("f()",), entry_points=("f",))
    server = Path(f"/proc/{psutil.Process(worker.pid).children()[0].pid}")
    look(worker)
    before = len(list((server / "fd").iterdir()))
    for _ in range(4):
        assert worker.run(program, Limits(wall_s=0.2)).status == "timeout"
    assert look(worker) == seen()
    assert len(list((server / "fd").iterdir())) == before
    assert (server / "mountinfo").read_text().count(" /box ") == 1
