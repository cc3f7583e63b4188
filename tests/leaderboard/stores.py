"""Run folders made up for the board's tests: many models, damaged files, hostile texts."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dare_eval.records.item_files import write_items
from dare_eval.records.items import ItemRecord, item_id
from dare_eval.records.ledger import Budget
from dare_eval.records.manifest import DatasetEntry, ModelEntry, RunManifest, write_manifest
from dare_eval.records.provenance import weight_hash
from dare_eval.records.store import Store

HOSTILE = (
    "<script>alert('x')</script><img src=x onerror=alert('y')> =1+1 $x^2$ **bold** [a](javascript:alert(1)) "
    "![i](http://127.0.0.1:9/i.png) :red[hot] :material/delete: `code` \u202e &amp; \x07"
)
HOSTILE_MODEL = "=cmd<b>model <img src=x onerror=alert('y')> :red[hot] :material!delete: $x^2$ `code` **bold**"
STAMP = "20260101_000000"
SPEC = {"family": "llada", "gen_length": 16, "block_length": 8, "steps": 16, "policy": "quota", "temperature": 0.0}


def items(verdicts: Sequence[bool], dataset: str = "toy", *, nfe: int | None = 16, **fields: Any) -> list[ItemRecord]:
    """Return one record per verdict, with a step map over 16 positions where ``nfe`` is given."""
    found = []
    for number, right in enumerate(verdicts):
        steps = [position * (nfe or 0) // 16 for position in range(16)] if nfe else None
        words = " ".join(f"w{number + place}" for place in range(10))
        base: dict[str, Any] = {
            "index": number, "correct": right, "value": float(right), "extracted": str(number), "reference": number,
            "rule": "last_number", "prompt": f"Question {number}?", "prompt_sha": f"p{number}", "response": words,
            "tokens": tuple(range(10)), "generated_tokens": 10, "wall_s": 0.5, "stop": "eos", "nfe": nfe,
            "step_map": steps,
        }  # fmt: skip
        found.append(ItemRecord(item_id=item_id(dataset, "test", number), **(base | fields)))
    return found


def write_run(
    root: Path,
    name: str,
    content: dict[str, list[ItemRecord]],
    *,
    model: str = "model",
    spec: dict[str, Any] | None = None,
    entry: dict[str, Any] | None = None,
    **maker: Any,
) -> Path:
    """Write one run of ``model`` on the data sets of ``content`` and return its folder."""
    folder = root / name / STAMP
    sets = []
    for dataset, records in content.items():
        write_items(folder / "records" / model / f"{dataset}.jsonl", records)
        facts = {"dataset": dataset, "split": "test", "prompt_hash": "p", "content_hash": "c", "scorer": "toy@1"}
        facts |= {"expected": len(records), **(entry or {})}
        sets.append(DatasetEntry(name=dataset, **facts))
    whole = SPEC if spec is None else spec
    facts = {"family": str(whole.get("family") or "llada"), "weight_hash": f"hash of {model}", **maker}
    made = ModelEntry(name=model, decode_specs=dict.fromkeys(content, whole), **facts)
    manifest = RunManifest(
        run_id=f"{name}/{STAMP}", kind="evaluation", status="finished", started="2026-01-01T00:00:00+00:00",
        models=(made,), datasets=tuple(sets), environment={"device": "cpu", "dtype": "float32"},
    )  # fmt: skip
    write_manifest(folder, manifest)
    return folder


def write_checkpoint(root: Path, name: str, algorithm: str, seed: int, *, lr: float = 1e-3) -> Path:
    """Write a training run with its checkpoint (weights made of its name) and return the checkpoint's folder."""
    folder = root / "train" / name
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text("{}")
    (folder / "model" / "model.safetensors").write_bytes(name.encode())
    budget = Budget(prompts=100, optimizer_steps=10 if algorithm == "d1" else 20, wall_s=5.0)
    entry = ModelEntry(name=name, family="llada", algorithm=algorithm, parent="base", parent_hash="hash of base")
    write_manifest(
        folder,
        RunManifest(run_id=f"train/{name}", kind="training", status="finished", models=(entry,), budget=budget,
                    seeds={"training": seed}, config={"lr": lr, "seed": seed, "output_dir": str(folder)}),
    )  # fmt: skip
    lines = [json.dumps({"step": step, "loss": 1 / step, "reward": step / 10}) for step in range(1, 6)]
    (folder / "metrics.jsonl").write_text("\n".join([*lines, '{"half']))
    return folder / "model"


def one(root: Path) -> None:
    """Write one run."""
    draw = np.random.default_rng(0)
    write_run(root, "only", {"toy": items([bool(x) for x in draw.random(20) < 0.5])})


def many(root: Path) -> None:
    """Write sweeps of two families, a left-to-right model, another template, trained checkpoints, hostile texts."""
    draw = np.random.default_rng(1)

    def some(share: float, dataset: str = "toy", n: int = 80, **fields: Any) -> list[ItemRecord]:
        return items([bool(x) for x in draw.random(n) < share], dataset, **fields)

    for family in ("llada", "dream"):
        for steps, share in ((4, 0.3), (8, 0.5), (16, 0.6)):
            spec = SPEC | {"family": family, "steps": steps}
            sets = {"toy": some(share, nfe=steps), "graded": graded(some(share, "graded", nfe=steps))}
            write_run(root, f"{family}-{steps}", sets, model=f"{family}-8b", spec=spec, entry={"graded_metric": "cell"})
    slow = {"family": "qwen3", "gen_length": 16}
    write_run(root, "left-to-right", {"toy": some(0.7, nfe=None)}, model="qwen", spec=slow, family="qwen3")
    write_run(root, "template", {"toy": some(0.9)}, model="templated", entry={"template": "other", "prompt_hash": "q"})
    hostile = some(0.5, response=HOSTILE, extracted=HOSTILE, prompt=HOSTILE, reference=HOSTILE)
    write_run(root, "hostile", {"toy": hostile}, model=HOSTILE_MODEL)
    write_run(root, "base", {"toy": some(0.2)}, model="base")
    for algorithm, seeds in (("d1", (1, 2)), ("spg", (1,))):
        for seed in seeds:
            name = f"{algorithm}-{seed}"
            place = write_checkpoint(root, name, algorithm, seed)
            write_run(root, f"eval-{name}", {"toy": some(0.8)}, model=name, weight_hash=weight_hash(place))


def graded(records: Sequence[ItemRecord]) -> list[ItemRecord]:
    """Return ``records`` with partial credit for the wrong ones."""
    return [dataclasses.replace(r, value=1.0 if r.correct else 0.01 * (r.index % 90)) for r in records]


def corrupt(root: Path, store: Store) -> None:
    """Write runs that are damaged in every way that is known, and register one whose folder then goes away."""
    good = items([True, False] * 10)
    bad_lines = write_run(root, "bad-lines", {"toy": good})
    with (bad_lines / "records" / "model" / "toy.jsonl").open("a") as stream:
        stream.write('{"version":7,"item_id":"x"}\n{"no json <b>\n[1]\n{"version":1,"item_')
    (write_run(root, "bad-manifest", {"toy": good}) / "manifest.json").write_text('{"version": ')
    (write_run(root, "new-manifest", {"toy": good}) / "manifest.json").write_text('{"version": 99}')
    (write_run(root, "no-manifest", {"toy": good}) / "manifest.json").unlink()
    (write_run(root, "bad-report", {"toy": good}) / "report.json").write_text('[{"model": 1}]')
    (bad_lines / "stability.json").write_text("{")
    (root / "report").mkdir()
    (root / "report" / "report.xml").write_text("<testsuites><")
    (root / "report.xml").symlink_to(root / "nowhere.xml")
    (bad_lines / "failures").mkdir()
    (bad_lines / "failures" / "f.json").symlink_to(root / "nowhere.json")
    twin = json.loads((write_run(root, "twin-a", {"toy": good}) / "manifest.json").read_text())
    twin_b = write_run(root, "twin-b", {"toy": good})
    (twin_b / "manifest.json").write_text(json.dumps(twin))
    gone = write_run(root, "gone", {"toy": good})
    store.register_evaluation(gone)
    shutil.rmtree(gone)
    empty = write_run(root, "no-records", {"toy": good})
    (empty / "records" / "model" / "toy.jsonl").unlink()
