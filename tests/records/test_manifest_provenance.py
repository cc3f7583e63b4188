import dataclasses
import json
import multiprocessing
import subprocess

import pytest

from dare_eval.errors import DataError
from dare_eval.records import provenance
from dare_eval.records.ledger import Budget
from dare_eval.records.manifest import (
    DatasetEntry,
    ModelEntry,
    RunManifest,
    now,
    read_manifest,
    update_manifest,
    write_manifest,
)


def example() -> RunManifest:
    return RunManifest(
        run_id="work/20260101_000000",
        kind="evaluation",
        models=(ModelEntry(name="m", weight_hash="ab", decode_specs={"d": {"gen_length": 8}}, parent="base"),),
        datasets=(DatasetEntry(name="d", scorer="gsm8k@1", expected=3),),
        seeds={"decoding": 1},
        environment={"git": {"commit": "c", "dirty": False}},
        started=now(),
        budget=Budget(prompts=4, wall_s=1.5),
    )


def test_manifest_comes_back_and_keeps_foreign_entries(tmp_path):
    manifest = dataclasses.replace(example(), extra={"note": ["<b>", 1]})
    path = write_manifest(tmp_path / "run", manifest)
    assert read_manifest(path.parent) == manifest
    assert json.loads(path.read_text())["version"] == 1
    assert manifest.model("m").parent == "base" and manifest.model("x") is None and manifest.dataset("d").expected == 3


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"version": 99}', '{"version": 1}', '{"version": 1, "run_id": "a", "kind": "b", "models": [3]}'],
)
def test_damaged_or_unknown_manifests_name_the_file(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError) as caught:
        read_manifest(tmp_path)
    assert "manifest" in str(caught.value) and str(tmp_path) in str(caught.value)


def test_missing_manifest_is_said(tmp_path):
    with pytest.raises(DataError, match="missing"):
        read_manifest(tmp_path)


def _add_seed(folder, name):
    update_manifest(folder, lambda old: dataclasses.replace(old, seeds=old.seeds | {name: 1}))


def test_updates_from_several_processes_all_arrive(tmp_path):
    write_manifest(tmp_path, example())
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add_seed, args=(tmp_path, f"s{n}")) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(read_manifest(tmp_path).seeds) == {"decoding"} | {f"s{n}" for n in range(8)}


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("DARE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "ckpt"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")
    return folder


def test_weight_hash_follows_content_and_ignores_the_rest(checkpoint):
    first = provenance.weight_hash(checkpoint)
    (checkpoint / "README.md").write_text("other")
    assert provenance.weight_hash(checkpoint) == first
    for name, content in (("model.safetensors", b"Weights"), ("config.json", b"{ }"), ("more.safetensors", b"")):
        before = provenance.weight_hash(checkpoint)
        (checkpoint / name).write_bytes(content)
        assert provenance.weight_hash(checkpoint) != before


def test_weight_hash_reads_a_file_once(checkpoint, monkeypatch):
    read = []
    whole = provenance.file_sha256
    monkeypatch.setattr(provenance, "file_sha256", lambda path: read.append(path.name) or whole(path))
    first = provenance.weight_hash(checkpoint)
    assert provenance.weight_hash(checkpoint) == first and sorted(read) == ["config.json", "model.safetensors"]
    (provenance.cache_dir() / "weight_hashes.json").write_text("damaged")
    assert provenance.weight_hash(checkpoint) == first and len(read) == 4


def test_weight_hash_needs_weights(tmp_path):
    with pytest.raises(DataError, match="safetensors"):
        provenance.weight_hash(tmp_path)


def test_git_state_tells_commit_and_changes(tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True)

    assert provenance.git_state(tmp_path) == {"commit": None, "dirty": None}
    git("init", "-q")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-qm", "one")
    clean = provenance.git_state(tmp_path)
    assert len(clean["commit"]) == 40 and clean["dirty"] is False
    (tmp_path / "untracked").write_text("1")
    assert provenance.git_state(tmp_path) == clean
    (tmp_path / "file").write_text("2")
    assert provenance.git_state(tmp_path) == clean | {"dirty": True}


def test_environment_names_what_ran():
    found = provenance.environment(device="cpu", dtype="float32", attn_backend="sdpa")
    assert found["packages"]["numpy"] and found["device"] == "cpu" and json.dumps(found)
