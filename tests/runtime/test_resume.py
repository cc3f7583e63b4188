"""A run that is killed at any moment is continued by the same command, and ends as if nothing had happened."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from tests.runtime.configs import config, dataset, model

pytestmark = pytest.mark.xdist_group("opencompass")
VOLATILE = ("wall_s",)


def place(workplace):
    slow = model("slow", sleep_s=0.05, batch_size=2)
    return workplace.config(config([slow], [dataset(size=24), dataset("more", start=50, size=16)]))


def settled(done, name):
    return [{k: v for k, v in r.items() if k not in VOLATILE} for r in done.records("slow", name)]


def wait_for_items(folder: Path, count: int, deadline_s: float = 60) -> None:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        files = folder.rglob("*.items.jsonl")
        if sum(path.read_bytes().count(b"\n") for path in files) >= count:
            return
        time.sleep(0.01)
    raise AssertionError("no items appeared")


@pytest.fixture(scope="module")
def uninterrupted(server, tmp_path_factory):
    from tests.runtime.harness import Workplace

    workplace = Workplace(server, tmp_path_factory.mktemp("whole"))
    done = workplace.run(place(workplace))
    assert done.code == 0, done.text
    return {name: settled(done, name) for name in ("add", "more")}


@pytest.mark.parametrize("again", [(), ("-r",)], ids=["same command", "with -r"])
def test_killed_three_times_at_random_moments(workplace, uninterrupted, again):
    rng = random.Random(len(again))
    config_file = place(workplace)
    for number in range(3):
        started = workplace.start(config_file, *(again if number else ()))
        wait_for_items(workplace.place / "runs", 1 + number * 8 + rng.randrange(8))
        time.sleep(rng.random() * 0.1)
        started.kill()
        assert started.wait().code == -9
        time.sleep(1.0 if not again else 0.0)  # run folders are named by the second
    done = workplace.run(config_file, *again)
    assert done.code == 0, done.text
    assert {name: settled(done, name) for name in ("add", "more")} == uninterrupted
    decoded = [int(text) for text in workplace.decoded()]
    lost = len(decoded) - len(set(decoded))
    assert set(decoded) == {*range(24), *range(50, 66)}
    assert lost <= 3 * 2, "each kill may cost one batch of two"


def test_a_killed_run_leaves_no_worker_behind(workplace):
    started = workplace.start(place(workplace))
    wait_for_items(workplace.place / "runs", 4)
    started.kill()
    started.wait()
    time.sleep(0.2)
    count = len(workplace.decoded())
    time.sleep(0.5)
    assert len(workplace.decoded()) == count


def test_a_finished_run_is_not_continued(workplace):
    file = workplace.config(config([model("sums")], [dataset()]))
    assert workplace.run(file).code == 0
    assert workplace.run(file).code == 0
    assert len(workplace.decoded()) == 24


def test_dare_eval_run_continues_in_the_same_folder_unless_fresh(workplace):
    file = workplace.config(config([model("sums", raise_at=5)], [dataset()]))
    first = workplace.run("run", file, program="dare-eval")
    assert first.code == 3, first.text
    again = workplace.run("run", file, program="dare-eval")
    assert again.run == first.run
    assert "continuing" in again.out
    fresh = workplace.run("run", file, "--fresh", program="dare-eval")
    assert fresh.run != first.run
    assert len(workplace.decoded()) == 22


def test_an_item_line_cut_in_half_is_decoded_again(workplace):
    file = workplace.config(config([model("sums", raise_at=11, batch_size=1)], [dataset()]))
    first = workplace.run(file)
    items = first.run / "predictions" / "sums" / "add.items.jsonl"
    lines = items.read_bytes().split(b"\n")
    kept = [line for line in lines if line and "error" not in json.loads(line)]
    items.write_bytes(b"\n".join(kept[:-1]) + b"\n" + kept[-1][:40])
    workplace.run(file, "-r")
    assert workplace.decoded()[11:] == ["10"]


def test_killed_before_the_table_was_seen_is_not_finished(workplace):
    """Without its last state a run counts as interrupted: the same command shows its numbers without decoding."""
    config_file = place(workplace)
    first = workplace.run(config_file)
    manifest = json.loads((first.run / "manifest.json").read_text())
    (first.run / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    decoded = len(workplace.decoded())
    again = workplace.run(config_file)
    assert again.code == 0, again.text
    assert len(workplace.decoded()) == decoded


def test_the_last_state_is_written_after_the_table(monkeypatch, tmp_path):
    from dare_eval.runtime import summarizer

    def closed(*_):
        raise BrokenPipeError(32, "the terminal is gone")

    states = []
    monkeypatch.setattr(summarizer.ReportSummarizer, "_upstream_files", lambda *_: None)
    monkeypatch.setattr(summarizer.ReportSummarizer, "_combinations", lambda _: [])
    monkeypatch.setattr(summarizer, "show_table", closed)
    monkeypatch.setattr(summarizer, "finish_manifest", lambda *_: states.append("finished"))
    made = object.__new__(summarizer.ReportSummarizer)
    made.work_dir, made.summary_groups = str(tmp_path), []
    with pytest.raises(SystemExit):
        made.summarize()
    assert states == []
