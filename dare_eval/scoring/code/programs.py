"""What is run (``Program``), under which limits (``Limits``) and what came of it (``Verdict``)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from dare_eval.errors import UsageError, unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one program. All are applied as given; none is rounded or replaced by a hidden default."""

    wall_s: float = 10.0
    """Seconds from start to verdict, tests included, without those spent waiting for a CPU."""
    patience: float = 7.0
    """At most how many times ``wall_s`` may be spent waiting for a CPU; 0 counts every second."""
    memory_mib: int = 1024
    """Address space of each process."""
    total_memory_mib: int = 1536
    """Resident memory of all processes of a program together, beyond what they share."""
    processes: int = 32
    """Processes of a program at one time."""
    file_mib: int = 16
    """Size of one written file."""
    box_mib: int = 64
    """Size of the program's own file system (memory)."""
    open_files: int = 128
    """Open descriptors of each process."""
    output_bytes: int = 20_000
    """Printed output that is kept; more is read and dropped."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value < 0 or (value == 0 and item.name != "patience"):
                raise UsageError(f"limit '{item.name}' must be positive", seen=value)

    @property
    def longest_s(self) -> float:
        """Wall seconds after which a program has been ended on any machine."""
        return self.wall_s * (1.0 + self.patience)

    def to_dict(self) -> dict[str, Any]:
        """Return the limits by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Limits:
        """Return the limits of a mapping; raises ``UsageError`` for a name that is none."""
        known = [item.name for item in fields(cls)]
        for name in given:
            if name not in known:
                raise unknown("limit", name, known)
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program and what decides whether it is right.

    With ``stdin`` the code runs as a script (``__name__ == "__main__"``) and its output is the result; otherwise the
    code is loaded as a module and ``tests`` are run against it in order, after ``setup``.
    """

    code: str
    tests: tuple[str, ...] = ()
    """Trusted statements that use the program, mostly asserts."""
    setup: tuple[str, ...] = ()
    """Trusted definitions the tests rely on: what the prompt defines, ``test_setup_code``."""
    entry_points: tuple[str, ...] = ()
    """Names the program must define."""
    stdin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a program.

    ``status``: passed, failed, timeout, exited, memory, missing_entry_point or error:TYPE. A script has passed when
    it ended by itself with exit status 0; whether its ``output`` is right is for the caller to say. ``bad_test`` is no
    verdict on the program: a test is not Python.
    """

    status: str
    reason: str = ""
    trace: str = ""
    """End of the traceback, at most 2000 characters."""
    output: str = ""
    """Printed output, cut at ``Limits.output_bytes``."""
    output_bytes: int = 0
    """Printed bytes, the dropped ones included."""
    tests_passed: int = 0
    wall_s: float = 0.0
    waited_s: float = 0.0
    """Seconds of ``wall_s`` in which the program waited for a CPU, looked up when its time seemed over; else 0."""
    processes: int = 0
    """Most processes seen at one time, counted every 10 ms; 0 for a program that ended sooner."""
    memory_mib: int = 0
    isolation: str = ""
    """``namespaces``, ``none`` or the address of a remote sandbox."""

    @property
    def passed(self) -> bool:
        """Whether every test passed."""
        return self.status == "passed"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)
