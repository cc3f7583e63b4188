"""RL with a server as rollout backend takes the same steps as in-process rollouts: tokens, rewards, losses, weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

COMMON = [
    "rl", "--config", "configs/train/rl/tiny_bd_countdown.yaml", "--algo", "cj_grpo",
    "--set", "train.max_steps=3", "--set", "train.batch_size=4", "--set", "train.eval_every=3",
    "--set", "data.train=puzzles/countdown[rl:40,validation:16]",
]  # fmt: skip


def train(cli, folder: Path, *more: str) -> list[dict]:
    env = {"DARE_DB": f"sqlite:///{folder.parent}/store.db"}
    done = cli("dare-train", *COMMON, "--output-dir", folder, *more, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_server_decodes_what_the_trainer_would_have(tmp_path, serve, cli):
    ours = train(cli, tmp_path / "inprocess")
    server = serve(faults="20:drop,31:busy")
    options = json.dumps({"url": server.url, "folder": str(tmp_path / "shared"), "backoff_s": 0.05})
    theirs = train(cli, tmp_path / "served", "--set", "rollout.backend=sglang", "--set", f"rollout.options={options}")
    for name in ("reward", "loss", "exact", "grad_norm"):
        pairs = [(a[name], b[name]) for a, b in zip(ours, theirs, strict=True) if name in a]
        assert pairs and all(a == pytest.approx(b, rel=1e-5, abs=1e-7) for a, b in pairs), name
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == ["weights-0", "weights-1"]


def test_a_server_without_our_algorithm_and_wrong_options_are_refused(tmp_path):
    from dare_eval.errors import SetupError, UsageError
    from dare_eval.networks import load_network
    from dare_train.rl.backends import BackendFacts
    from dare_train.rl.served import SGLangRollout

    network = load_network("tiny-bd-countdown")
    facts = BackendFacts(network=network, folder="tiny-bd-countdown", attn_backend="auto", options={"urll": "http://x"})
    with pytest.raises(UsageError, match="url"):
        SGLangRollout(facts)
    with pytest.raises(UsageError, match="shared folder"):
        SGLangRollout(
            BackendFacts(network=network, folder="tiny-bd-countdown", attn_backend="auto", options={"url": "http://x"})
        )
    gone = {"url": "http://127.0.0.1:9", "folder": str(tmp_path), "retries": 0}
    with pytest.raises(SetupError, match="does not answer"):
        SGLangRollout(BackendFacts(network=network, folder="tiny-bd-countdown", attn_backend="auto", options=gone))
