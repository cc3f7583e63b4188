"""Decoding keeps no gradients, and leaves nothing behind that training cannot use."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dare_eval.decoding import RecordOptions, decode
from dare_eval.spec import POLICIES, DecodeSpec
from tests.decoding.conftest import prompts, tiny


class Other(nn.Parameter):
    """Stands for a parameter of another type: a shard, or four-bit weights."""


def modes_of(network, spec) -> set[bool]:
    """Decode and return whether the network's passes ran in inference mode."""
    seen = []
    handle = network.layers[0].register_forward_hook(lambda *_: seen.append(torch.is_inference_mode_enabled()))
    try:
        decode(network, prompts((3, 5)), spec)
    finally:
        handle.remove()
    return set(seen)


@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
def test_a_network_is_trained_on_what_it_decoded(cache):
    network = tiny("llada")
    spec = DecodeSpec.build("llada", gen_length=8, block_length=4, cache=cache)
    found = decode(network, prompts((3, 5)), spec, record=RecordOptions())
    for result in found:
        trace = result.trace
        recorded = (trace.state_SG, trace.proposal_SG, trace.score_SG, trace.committed_SG)
        assert not any(each.is_inference() or each.requires_grad for each in recorded)
        assert len(trace.steps) == len(trace.state_SG) > 0
        network.zero_grad()
        logits_SGV = network(trace.state_SG)
        (logits_SGV.logsumexp(-1) * trace.score_SG.nan_to_num()).sum().backward()
        assert all(bool(each.grad.isfinite().all()) for each in network.parameters() if each.grad is not None)
        assert bool(next(network.parameters()).grad.any())
    network.zero_grad(set_to_none=True)


def test_weights_of_another_type_are_not_read_in_inference_mode():
    spec = DecodeSpec.build("llada", gen_length=8, block_length=4)
    network = tiny("llada")
    expected = [result.response for result in decode(network, prompts((3, 5)), spec)]
    assert modes_of(network, spec) == {True}
    norm = network.at(network.config.names.final_norm)
    plain = norm.weight
    norm._parameters["weight"] = Other(plain.detach())
    try:
        assert modes_of(network, spec) == {False}
        assert [result.response for result in decode(network, prompts((3, 5)), spec)] == expected
    finally:
        norm._parameters["weight"] = plain


def test_a_watcher_may_train():
    weight, seen = nn.Parameter(torch.ones(())), []

    def watch(reveal):
        with torch.enable_grad():
            (weight * len(reveal.tokens)).backward()
        seen.append(len(reveal.tokens))

    spec = DecodeSpec.build("llada", gen_length=8, block_length=4)
    decode(tiny("llada"), prompts((3,)), spec, record=RecordOptions(steps=(), watch=watch))
    assert float(weight.grad) == sum(seen) == 8


def test_a_policy_may_keep_and_train_on_scores(monkeypatch):
    kept = []

    quota = POLICIES.get("quota")
    select = quota.select

    def keeping(self, step):
        kept.append(step.score_RM)
        return select(self, step)

    monkeypatch.setattr(quota, "select", keeping)
    spec = DecodeSpec.build("llada", gen_length=8, block_length=4)
    decode(tiny("llada"), prompts((3, 5)), spec)
    assert kept
    weight = nn.Parameter(torch.ones(()))
    sum((weight * score_RM.nan_to_num(neginf=0.0)).square().sum() for score_RM in kept).backward()
    assert float(weight.grad) > 0
