"""The board as static pages, and the command that starts it."""

from __future__ import annotations

import csv
import io
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from leaderboard.data.board import Board
from leaderboard.snapshot import write_snapshot
from tests.leaderboard.stores import HOSTILE_MODEL
from tests.leaderboard.test_markup import read


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_static_pages_hold_results_ties_and_links_and_are_the_same_twice(board, tmp_path):
    found = board("many")
    write_snapshot(tmp_path / "a", found)
    write_snapshot(tmp_path / "b", found)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    index = (tmp_path / "a" / "index.html").read_text()
    for tag, attributes in read(index).tags:
        target = dict(attributes).get("href")
        if tag == "a" and not target.startswith("results."):
            assert (tmp_path / "a" / target.split("#")[0]).is_file(), target
    assert "dare-tie first" in index and "NFE 16" in index and "16 steps" in index
    cost = (tmp_path / "a" / "cost.html").read_text()
    assert cost.count("<svg") >= 4 and "AUP" in cost and "llada-8b, quota" in cost
    algorithms = (tmp_path / "a" / "algorithms.html").read_text()
    assert "Trained from base" in algorithms and "d1 minus base" in algorithms and "optimizer steps" in algorithms


def test_static_pages_run_nothing_and_hold_no_prompts_or_answers(board, tmp_path):
    write_snapshot(tmp_path, board("many"))
    for name, content in files(tmp_path).items():
        page = read(content.decode())
        assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object"}, name
        assert not any(key.startswith("on") for _, attributes in page.tags for key, _ in attributes), name
        assert "Question 0?" not in content.decode() and "w0 w1" not in content.decode()
    assert HOSTILE_MODEL in "".join(read((tmp_path / "index.html").read_text()).texts)


def test_damaged_runs_are_named_on_the_static_page(board, tmp_path):
    write_snapshot(tmp_path, board("corrupt"))
    shown = (tmp_path / "problems.html").read_text()
    assert "unknown version" in shown and "folder is gone" in shown and "2 folders share this id" in shown


def test_an_empty_board_has_static_pages_too(tmp_path):
    write_snapshot(tmp_path, Board((), {}, (), {}, (), (), {}))
    assert "bash scripts/demo.sh" in (tmp_path / "index.html").read_text()


def test_the_command_writes_pages_and_downloads_without_formulas(place, cli, tmp_path):
    folder = place("many")
    names = {"DARE_CACHE": str(folder / "cache")}
    arguments = ("--static", tmp_path / "site", "--db", f"sqlite:///{folder}/dare.db", "--runs", folder / "runs")
    done = cli("dare-eval", "board", *arguments, env=names)
    assert done.returncode == 0, done.stderr
    assert "index.html" in done.stdout
    rows = list(csv.DictReader(io.StringIO((tmp_path / "site" / "results.csv").read_text())))
    assert any(row["model"] == "'" + HOSTILE_MODEL for row in rows) and not any(
        row["model"].startswith("=") for row in rows
    )
    assert len(json.loads((tmp_path / "site" / "results.json").read_text())) == len(rows)


def test_the_command_explains_a_store_it_cannot_read(cli, tmp_path):
    (tmp_path / "x.db").write_text("no database " * 200)
    done = cli("dare-eval", "board", "--static", tmp_path / "site", "--db", f"sqlite:///{tmp_path}/x.db")
    assert done.returncode == 4 and "cannot be opened" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "site").exists()


def test_the_command_starts_the_board_and_ends_with_it(place):
    place("one")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "dare-eval"), "board", "--port", str(port), "--address", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0)
    try:
        for _ in range(240):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as answer:
                    assert answer.read() == b"ok"
                    break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, process.stdout.read()
                time.sleep(0.5)
        else:
            raise AssertionError("the board did not start")
    finally:
        import os
        import signal

        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 0
