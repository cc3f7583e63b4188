"""Decoding keeps no gradients, and leaves nothing behind that training cannot use."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dare_eval.decoding import RecordOptions, decode
from dare_eval.spec import DecodeSpec
from tests.decoding.conftest import prompts, tiny


class Sharded(nn.Parameter):
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
    norm._parameters["weight"] = Sharded(plain.detach())
    try:
        assert modes_of(network, spec) == {False}
        assert [result.response for result in decode(network, prompts((3, 5)), spec)] == expected
    finally:
        norm._parameters["weight"] = plain
