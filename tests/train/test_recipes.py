"""Shipped checkpoints come out of their committed recipes: the same seed and thread count give the same weights."""

from __future__ import annotations

import json

import pytest
import torch

from dare_eval.networks import load_network, resolve_model_path
from tests.train.conftest import same_weights, weights_of

SHIPPED = {
    "tiny-sudoku": "sft_tiny_sudoku_start",
    "tiny-countdown": "sft_tiny_countdown_start",
    "tiny-bd-countdown": "sft_tiny_countdown_block_start",
}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("name", SHIPPED)
def test_shortened_recipe_repeats_exactly(cli, tmp_path, name, root):
    recipe = root / f"configs/train/{SHIPPED[name]}.yaml"
    for folder in ("a", "b"):
        changes = ["--set", "train.max_steps=3", "--output-dir", tmp_path / folder]
        done = cli("dare-train", "sft", "--config", recipe, *changes, env=ONE_THREAD)
        assert done.returncode == 0, done.stderr
    assert same_weights(weights_of(tmp_path / "a"), weights_of(tmp_path / "b"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_whole_recipe_repeats_exactly_and_gives_the_shipped_model(cli, tmp_path, name, root):
    recipe = root / f"configs/train/{SHIPPED[name]}.yaml"
    for folder in ("a", "b"):
        done = cli("dare-train", "sft", "--config", recipe, "--output-dir", tmp_path / folder, env=ONE_THREAD)
        assert done.returncode == 0, done.stderr
    ours = weights_of(tmp_path / "a")
    assert same_weights(ours, weights_of(tmp_path / "b"))
    shipped = load_network(str(resolve_model_path(name))).state_dict()
    difference = max(float((shipped[key] - ours[key]).abs().max()) for key in shipped)
    assert difference < 0.3, "other machines round differently, but it is the same training"


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_checkpoint_is_small_whole_and_says_how_it_was_made(name):
    folder = resolve_model_path(name)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 2**20
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == "finished" and manifest["config"]["output_dir"].endswith(SHIPPED[name])
    from dare_eval.records.provenance import weight_hash

    assert manifest["models"][0]["weight_hash"] == weight_hash(folder)
    network = load_network(str(folder))
    with torch.no_grad():
        assert torch.isfinite(network(torch.tensor([[3, 5, 8, 1]]))).all()
