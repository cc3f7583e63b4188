"""Turns what a golden file stores into samples, noise and networks of the update that trains."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import torch

from dare_train.rl.algorithm import find_algorithm
from dare_train.rl.samples import make_sample
from dare_train.rl.trajectory import Trajectory
from dare_train.rl.update import Updater
from dare_train.scorer import Scorer

CLOSE = {"rel": 2e-5, "abs": 1e-6}
NEVER = -7
"""A token id that no file uses."""


def facts(params, **changes):
    """Return what an algorithm asks of a network."""
    known = {"family": "llada", "pad_id": NEVER, "eos_id": NEVER, "shift": False, "block_length": None}
    return SimpleNamespace(**{**known, "mask_id": params.get("mask_id", NEVER), **changes})


class StoredRows:
    """A network that answers every pass over the same rows with the same stored logits, which take gradients."""

    def __init__(self, logits_RTV):
        self.logits_RTV = logits_RTV
        self.config = SimpleNamespace(vocab_size=logits_RTV.shape[-1])
        self.seen = []

    def body(self, ids_BT, *, positions_BT=None, mask=None):
        self.seen.append(ids_BT)
        assert ids_BT.shape == self.logits_RTV.shape[:2], (ids_BT.shape, self.logits_RTV.shape)
        return self.logits_RTV

    def head(self, hidden_XV):
        return hidden_XV


def updater(name, known, *, settings=None, shift=False):
    """Return the update of an algorithm or preset, all rows in one forward."""
    algorithm = find_algorithm(name).resolve(known)
    if settings:
        algorithm = algorithm.with_settings(settings)
    scorer = Scorer(shift=shift, pack=False)
    return Updater(algorithm, known, scorer, rows_per_forward=10**6, skip_without_signal=False)


def sample(ids, prompt_length, known, *, advantage=1.0, counted=None, group=0, **trajectory):
    """Return one sample; ``counted`` says which response tokens do (default: all)."""
    ids = [int(token) for token in ids]
    made = Trajectory(
        prompt=tuple(ids[:prompt_length]), response=tuple(ids[prompt_length:]), group=group, reward=0.0, **trajectory
    )
    found = make_sample(made, torch.tensor(ids[prompt_length:]), float(advantage), "all", known)
    if counted is None:
        return found
    loss_T = torch.cat([torch.zeros(prompt_length, dtype=torch.bool), torch.as_tensor(counted).bool()])
    return replace(found, loss_T=loss_T)


def unpadded(ids, attention_mask, response_length):
    """Return the columns that exist and the length of the prompt, from left-padded prompt and right-padded response."""
    valid_T = torch.tensor(attention_mask).bool()
    columns = valid_T.nonzero().flatten()
    return columns, int(valid_T[: len(ids) - response_length].sum())


def run(update, samples, noises, logits_RTV=None, *, old=None, ref=None):
    """Return the numbers of one update and its batch; gradients go to what ``logits_RTV`` was made from."""
    batch = update.assemble(samples, noises)
    batch = batch.with_values(
        old=None if old is None else old(batch),
        ref=None if ref is None else ref(batch),
    )
    network = StoredRows(logits_RTV)
    return update.backward(network, batch), batch, network


def from_table(table, prompt_length):
    """Return a function from a batch to the entry [sample, column] of each token unit."""
    values = torch.tensor(table)

    def pick(batch):
        return values[batch.units.sample_U, batch.units.column_U - prompt_length]

    return pick


def clip(low, high=None):
    """Return settings with a clip range."""
    return {"objective": {"clip_low": low, "clip_high": low if high is None else high}}


def clipped(params, low, high=None, **parts):
    """Return what a file of a clipped algorithm states: clip range, weight of the KL, updates per rollout."""
    stated = {"kl": {"coef": params["beta"]}, "updates_per_rollout": params["num_iterations"]}
    return {**clip(low, high), **stated, **parts}


def rate(value):
    """Return a recorded draw."""
    return {"value": value}
