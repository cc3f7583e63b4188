"""Runs real command lines in forks of one pre-imported process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import ROOT


@dataclass
class Done:
    """A finished command line."""

    code: int
    out: str
    err: str
    run: Path
    """The newest run folder when the command ended."""

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def report(self) -> list[dict[str, Any]]:
        return json.loads((self.run / "report.json").read_text())

    def row(self, metric: str = "accuracy", **where: str) -> dict[str, Any]:
        found = [r for r in self.report if r["metric"] == metric and all(r[k] == v for k, v in where.items())]
        assert len(found) == 1, self.report
        return found[0]

    def records(self, model: str, dataset: str) -> list[dict[str, Any]]:
        path = self.run / "records" / model / f"{dataset}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


@dataclass
class Started:
    """A command line that runs; ``pid`` leads a process group of its own."""

    server: Server
    pid: int
    out: Path
    err: Path
    folder: Path

    def wait(self) -> Done:
        code = self.server.wait(self.pid)
        runs = sorted(self.folder.glob("20*")) or [self.folder]
        return Done(code, self.out.read_text(), self.err.read_text(), runs[-1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class Server:
    """The pre-imported process of a kind (``fork_server.KINDS``); every test of a session shares it."""

    def __init__(self, kind: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.fork_server", kind],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", "what the server forks with does not import"

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def console(
        self,
        place: Path,
        name: str,
        *args: object,
        cwd: Path = ROOT,
        env: dict[str, str] | None = None,
        timeout: int = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run a console script to its end, its output in files below ``place``."""
        argv = [name, *map(str, args)]
        pid = self.launch(place, *argv, cwd=cwd, env=env, timeout=timeout)
        code = self.wait(pid)
        return subprocess.CompletedProcess(argv, code, (place / "out").read_text(), (place / "err").read_text())

    def launch(
        self, place: Path, *argv: str, cwd: Path = ROOT, env: dict[str, str] | None = None, timeout: int = 300
    ) -> int:
        """Start a console script and return its process, to be waited for by ``wait``."""
        for name in ("out", "err"):
            (place / name).write_text("")  # may be read before the process has opened them
        request = {"argv": argv, "cwd": str(cwd), "out": f"{place}/out", "err": f"{place}/err", "limit_s": timeout}
        return self.ask({**request, "env": {**os.environ, "COLUMNS": "160", **(env or {})}})["pid"]

    def wait(self, pid: int) -> int:
        """Return the exit code of a process, negative for a signal."""
        return self.ask({"wait": pid})["code"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Workplace:
    """A folder in which one test runs command lines."""

    def __init__(self, server: Server, place: Path) -> None:
        self.server, self.place, self.number = server, place, 0
        self.env = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
        self.env |= {"DARE_CACHE": str(place / "cache"), "HOME": str(place), "FAKE_LOG": str(place / "decoded.log")}
        self.env |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        # Beside the work folder, not in it: a bare -r of upstream takes the last name there, whatever it is.
        self.env |= {"DARE_DB": f"sqlite:///{place}/store.db"}
        self.env.pop("DARE_DATA", None)
        self.env.pop("COMPASS_DATA_CACHE", None)

    def config(self, text: str, name: str = "config.py") -> Path:
        """Write a config that has this project's runtime and return its path."""
        path = self.place / name
        runtime = (ROOT / "configs" / "eval" / "_base" / "runtime.py").read_text()
        path.write_text(f"{runtime}\n{text}\n")
        return path

    def start(self, *arguments: object, program: str = "opencompass", folder: str = "runs") -> Started:
        self.number += 1
        out, err = self.place / f"{self.number}.out", self.place / f"{self.number}.err"
        where = [] if program == "dare-eval" and "run" not in map(str, arguments) else ["-w", str(self.place / folder)]
        argv = [program, *map(str, arguments), *where]
        request = {"argv": argv, "cwd": str(self.place), "env": self.env, "out": str(out), "err": str(err)}
        return Started(self.server, self.server.ask(request)["pid"], out, err, self.place / folder)

    def run(self, *arguments: object, program: str = "opencompass", folder: str = "runs") -> Done:
        """Run a command line to its end; run folders are named by the second, so one is waited for."""
        names = {path.name for path in (self.place / folder).glob("20*")}
        while time.strftime("%Y%m%d_%H%M%S") in names:
            time.sleep(0.05)
        return self.start(*arguments, program=program, folder=folder).wait()

    def decoded(self) -> list[str]:
        """Return the items that fake models have decoded, in order, over all runs of this test."""
        log = Path(self.env["FAKE_LOG"])
        return log.read_text().split() if log.exists() else []
