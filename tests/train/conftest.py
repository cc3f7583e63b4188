"""A network of two layers, its tokenizer and settings: small enough that a training step takes milliseconds."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from dare_eval.errors import IncompleteError
from dare_train.config import SftConfig
from dare_train.engine import loop
from dare_train.settings import validate

ARCHITECTURE: dict[str, Any] = {
    "architectures": ["LLaDAModelLM"],
    "model_type": "llada",
    "d_model": 16,
    "n_layers": 2,
    "n_heads": 2,
    "mlp_hidden_size": 32,
    "max_sequence_length": 64,
    "learned_positions": 64,
    "rope_theta": 10000.0,
    "weight_tying": False,
}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return ``base`` with nested ``changes``."""
    result = dict(base)
    for key, value in changes.items():
        inner = result.get(key)
        result[key] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return result


@pytest.fixture(autouse=True)
def one_thread():
    """Keep bit-identical runs comparable and the machine shared."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    """Keep checkpoints that tests train out of the repository's store."""
    monkeypatch.setenv("DARE_DB", f"sqlite:///{tmp_path}/store.db")


@pytest.fixture
def rows_file(tmp_path) -> Path:
    """Forty rows of unequal length."""
    path = tmp_path / "rows.jsonl"
    rows = [{"prompt": f"{n} {n + 1} = {2 * n + 1}", "response": " ".join(["+"] * (1 + n % 5))} for n in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def settings(tmp_path, rows_file):
    """Return the settings of a small run as a mapping, with nested changes."""

    def make(**changes: Any) -> dict[str, Any]:
        base = {
            "output_dir": str(tmp_path / "run"),
            "seed": 3,
            "model": {"architecture": ARCHITECTURE, "tokenizer": "puzzles"},
            "data": {"train": str(rows_file)},
            "optim": {"lr": 1e-2},
            "train": {"max_steps": 4, "batch_size": 6, "threads": 1, "log_every": 1},
        }
        return merged(base, changes)

    return make


@pytest.fixture
def config(settings):
    """Return the validated settings of a small run, with nested changes."""

    def make(**changes: Any) -> SftConfig:
        return validate(SftConfig, settings(**changes))

    return make


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """Return the exported tensors below ``folder``."""
    from safetensors.torch import load_file

    return load_file(folder / "model" / "model.safetensors")


def same_weights(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    """Whether two exports are equal bit for bit."""
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


@contextmanager
def stopped_after(step: int):
    """Expect that the run inside ends after optimizer step ``step``, behind which SIGTERM reaches it."""
    real = loop.train_step

    def interrupted(state, *args):
        numbers = real(state, *args)
        if state.step == step:
            signal.raise_signal(signal.SIGTERM)
        return numbers

    with pytest.MonkeyPatch.context() as patch, pytest.raises(IncompleteError, match=f"SIGTERM after step {step}"):
        patch.setattr(loop, "train_step", interrupted)
        yield
