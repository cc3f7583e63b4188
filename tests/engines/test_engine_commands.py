"""``dare-eval`` with engines: configs beside the native ones, plans without an engine, a run against a server."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from mmengine.config import Config

from dare_eval.networks import build_network, resolve_model_path, save_network
from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("opencompass")
CONFIGS = ROOT / "configs" / "eval"
ENGINE_CONFIGS = sorted([*CONFIGS.glob("*_sglang.py"), *CONFIGS.glob("*_lmdeploy.py")], key=lambda path: path.name)
COMMAND = ["run", "--model", "sdar-8b-chat", "--bench", "countdown", "--limit", "6"]
CONTEXT = ("max_position_embeddings", "learned_positions")
SET = {"dtype": "float32", "gen_length": 8, "steps": 8}


def test_the_families_have_configs_for_their_engines():
    names = {path.stem for path in ENGINE_CONFIGS}
    assert {"sdar_gsm8k_sglang", "sdar_gsm8k_lmdeploy", "sdar_moe_gsm8k_lmdeploy", "llada2_gsm8k_sglang"} <= names
    assert not any(name.startswith("llada2") and name.endswith("lmdeploy") for name in names)


@pytest.mark.parametrize("path", ENGINE_CONFIGS, ids=lambda path: path.stem)
def test_an_engine_config_differs_from_the_native_one_in_the_engine_alone(path):
    name, _, engine = path.stem.rpartition("_")
    ours, native = Config.fromfile(path), Config.fromfile(CONFIGS / f"{name}.py")
    assert ours["datasets"] == native["datasets"]
    [model], [plain] = ours["models"], native["models"]
    changed = {key for key in {*model, *plain} if model.get(key) != plain.get(key)}
    assert changed == {"type", "abbr"} and model["abbr"] == f"{plain['abbr']}-{engine}"


@pytest.mark.parametrize(
    ("name", "engine"),
    [("sdar_countdown", "sglang"), ("sdar_countdown", "lmdeploy"), ("llada2_countdown", "sglang")],
)
def test_plan_accepts_an_engine_config_without_engine_or_weights(workplace, name, engine):
    path = CONFIGS / f"{name}_{engine}.py"
    done = workplace.run("plan", path, "--limit", "3", "--device", "h200", program="dare-eval")
    assert done.code == 0, done.text
    assert "decoded by an engine" in done.text


def _set(changes: dict) -> list[str]:
    return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]


def _longer(folder):
    """Write a checkpoint like ``tiny-bd-countdown`` with room for a chat prompt, its weights drawn anew."""
    tiny = resolve_model_path("tiny-bd-countdown")
    shutil.copytree(tiny, folder)
    settings = json.loads((tiny / "config.json").read_text())
    settings = {key: 512 if value == 64 and key in CONTEXT else value for key, value in settings.items()}
    save_network(build_network(settings, generator=torch.Generator().manual_seed(0)), folder)
    return str(folder)


def _spec(done) -> dict:
    return done.report[0]["decode_spec"]


def _responses(done) -> dict[str, str]:
    [path] = (done.run / "records").glob("*/*.jsonl")
    return {one["item_id"]: one["response"] for one in map(json.loads, path.read_text().splitlines())}


def test_a_run_against_a_server_is_the_native_run(workplace, serve):
    folder = _longer(workplace.place / "longer")
    command = [*COMMAND, "--path", folder]
    native = workplace.run(*command, *_set(SET), program="dare-eval", folder="native")
    assert native.code == 0, native.text
    names = ("gen_length", "block_length", "steps", "policy", "threshold", "min_transfer", "cache")
    kept = {name: value for name, value in _spec(native).items() if name in names and value is not None}
    server = serve(folder, settings=kept)
    changes = {f"decoding.{key}": value for key, value in SET.items()} | {"url": server.url, "server.retries": 2}
    served = workplace.run(*command, "--engine", "sglang", *_set(changes), program="dare-eval", folder="served")
    assert served.code == 0, served.text
    a, b = (_responses(done) for done in (native, served))
    assert a == b and len(a) == 6
    assert _spec(served)["engine"].startswith("sglang")
