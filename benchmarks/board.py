"""How fast the board is: a made-up store of 200 runs with 1,500 items each, opened, filtered and paged.

Makes the store (seeded, about a minute), reads it as ``dare-eval board`` does when its server starts, then times what
a reader waits for: the first opening, an opening on a warm server, a filter, a page of items. Times are CPU seconds of
this process and wall seconds. ``--app`` runs the real page through Streamlit's test harness, drawing left out.

    python benchmarks/board.py --folder outputs/board --app
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dare_eval.records.item_files import write_items
from dare_eval.records.items import ItemRecord, item_id
from dare_eval.records.manifest import DatasetEntry, ModelEntry, RunManifest, write_manifest

DATASETS = (("gsm8k", 1000, None), ("humaneval", 164, None), ("sudoku", 336, "cell"))
STEPS = (16, 32, 64, 128, 256)
POLICIES = ("quota", "entropy", "margin", "sequential")


def make_store(folder: Path, runs: int, scale: float = 1.0) -> None:
    """Write ``runs`` runs of the three data sets below ``folder``; ``scale`` shrinks their sizes."""
    draw = np.random.default_rng(0)
    sizes = [(name, max(2, int(n * scale)), graded) for name, n, graded in DATASETS]
    hardness = {name: draw.normal(size=n) for name, n, _ in sizes}
    for number in range(runs):
        model, setting = divmod(number, len(STEPS) * 2)
        policy = POLICIES[model % len(POLICIES)] if setting % 2 else "quota"
        write_run(folder, number, (f"model-{model:02d}", policy, STEPS[setting // 2]), sizes, hardness, draw)


def write_run(
    folder: Path,
    number: int,
    what: tuple[str, str, int],
    sizes: list[tuple[str, int, str | None]],
    hardness: dict[str, Any],
    draw: np.random.Generator,
) -> None:
    """Write one run: items that are hard for one model are hard for all, and fewer forwards cost some quality."""
    model, policy, steps = what
    place = folder / f"{model}-{policy}-{steps}-{number}" / "20260101_000000"
    spec = {"family": "llada", "gen_length": 256, "block_length": 32, "steps": steps, "policy": policy, "cache": "none"}
    strength = 0.15 * float(model[-2:]) / 10 + 0.3 * np.log2(steps) - 1.5
    for name, n, graded in sizes:
        chance = 1 / (1 + np.exp(hardness[name] - strength))
        right = draw.random(n) < chance
        credit = np.where(right, 1.0, np.round(draw.random(n) * 0.9, 2)) if graded else right.astype(float)
        items = [_item(name, i, bool(right[i]), float(credit[i]), steps) for i in range(n)]
        write_items(place / "records" / model / f"{name}.jsonl", items)
    data = tuple(
        DatasetEntry(
            name=name, dataset=name, split="test", prompt_hash="p", content_hash="c", scorer=f"{name}@1",
            metric="exact" if graded else "accuracy", graded_metric=graded, expected=n,
        )
        for name, n, graded in sizes
    )  # fmt: skip
    entry = ModelEntry(
        name=model, family="llada", weight_hash=f"hash of {model}", decode_specs={d.name: spec for d in data}
    )
    run = f"{place.parent.name}/{place.name}"
    write_manifest(
        place,
        RunManifest(run_id=run, kind="evaluation", status="finished", started="2026-01-01T00:00:00+00:00",
                    models=(entry,), datasets=data),
    )  # fmt: skip


def _item(name: str, i: int, right: bool, credit: float, steps: int) -> ItemRecord:
    return ItemRecord(
        item_id=item_id(name, "test", i), index=i, prompt_sha=f"p{i}", prompt=f"Question {i}: " + "word " * 40,
        response=f"Step by step, the answer is {i if right else i + 1}.", extracted=str(i if right else i + 1),
        rule="last_number", correct=right, value=credit, reference=str(i), nfe=steps, generated_tokens=100 + i % 50,
        wall_s=steps * 0.03, stop="eos", step_map=tuple(position * steps // 128 for position in range(128)),
    )  # fmt: skip


def timed(name: str, action: Callable[[], Any], limit_s: float | None = None) -> Any:
    """Run ``action``, print what it took and the limit it is held to, and return its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = action()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    held = "" if limit_s is None else f"   (limit {limit_s:g} s)"
    print(f"{name:<58} {wall:8.3f} s wall {cpu:8.3f} s CPU{held}")
    return found


def measure() -> None:
    """Time the board's data functions on the store that DARE_DB names."""
    from dare_eval.records.database import database_url
    from dare_eval.records.store import Store
    from leaderboard.data import items, overview, pareto
    from leaderboard.data.board import load_board
    from leaderboard.data.source import refresh

    url = database_url()
    timed("first start: read runs, make all paired tests", lambda: refresh(url))
    timed("later start: nothing changed", lambda: refresh(url))
    store = Store(url)
    board = timed("read the store", lambda: load_board(url, store.version()), 2)
    print(f"  {len(board.runs)} runs, {len(board.cells)} results, {len(board.tests)} paired tests")
    timed("make all AUP intervals (first start)", lambda: pareto.prepare_areas(board))
    every = overview.Filters()
    shown = timed("overview: rows and tie groups", lambda: overview.overview(board, every), 2)
    timed(
        "overview: HTML",
        lambda: draw(shown),
        2,
    )
    timed("overview, warm: version, rows, tie groups, HTML", lambda: _open(store, url, every), 2)
    one = overview.Filters(benchmarks=("gsm8k",), policies=("quota",))
    timed("filter: one benchmark, one policy", lambda: overview.overview(board, one, 2), 0.3)
    timed("filter: part of a name", lambda: overview.overview(board, overview.Filters(text="model-07")), 0.3)
    timed("quality and cost, all models", lambda: pareto.strategies(board, ("gsm8k", "accuracy")), 2)
    cell = board.cells[0]
    args = cell.folder, cell.stamp, cell.model, "gsm8k"
    loaded = timed("items of one result, first time", lambda: items.load_items(*args), 2)
    timed("a page of items with a text filter", lambda: items.find_items(loaded.records, text="answer is 7"), 0.3)


def _open(store: Any, url: str, filters: Any) -> None:
    from leaderboard.data.board import load_board
    from leaderboard.data.overview import overview

    draw(overview(load_board(url, store.version()), filters))


def draw(shown: Any) -> str:
    """Return the overview's table as HTML."""
    from leaderboard.matrix import matrix

    return matrix(shown, lambda cell: f"items?result={cell.id}", lambda number: f"run?id={number}")


def measure_app() -> None:
    """Time the page itself: a first session, a second one on the warm server, and a filter."""
    from streamlit.testing.v1 import AppTest

    app = str(Path(__file__).resolve().parents[1] / "leaderboard" / "app.py")
    timed("page, first session", lambda: AppTest.from_file(app, default_timeout=600).run())
    second = timed(
        "page, another session on the warm server", lambda: AppTest.from_file(app, default_timeout=60).run(), 2
    )
    timed("page, filter chosen", lambda: second.multiselect(key="benchmarks").select("gsm8k").run(), 0.3)
    timed("page, another filter", lambda: second.multiselect(key="policies").select("quota").run(), 0.3)


def main() -> None:
    """Make the store where it is missing and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, required=True, help="folder for the store; an existing one is used again"
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the 1,500 items per run")
    parser.add_argument("--app", action="store_true", help="also run the page")
    options = parser.parse_args()
    folder = options.folder.resolve()
    os.environ |= {
        "DARE_DB": f"sqlite:///{folder}/dare.db",
        "DARE_RUNS": str(folder),
        "DARE_CACHE": str(folder / ".cache"),
    }
    if not (folder / "dare.db").exists():
        timed("make the runs", lambda: make_store(folder, options.runs, options.scale))
    measure()
    if options.app:
        measure_app()


if __name__ == "__main__":
    main()
