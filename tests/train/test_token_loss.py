"""Chunked log-probabilities: same values, same gradients, whichever way the chunks are computed."""

from __future__ import annotations

import pytest
import torch

from dare_train import token_loss
from dare_train.draws import seeded
from dare_train.token_loss import has_torch_chunks, recomputed_logps, target_logps
from tests.train.test_scorer import TOKENS, network


def problem(net, dtype=torch.float32):
    generator = seeded(3)
    hidden = torch.randn(23, net.config.width, generator=generator).to(dtype).requires_grad_()
    target = torch.randint(0, net.config.vocab_size, (23,), generator=generator)
    slope = torch.randn(23, generator=generator)
    return hidden, target, slope


def solved(net, run, dtype=torch.float32):
    """Return values and gradients of a non-linear function of the log-probabilities."""
    net.zero_grad()
    hidden, target, slope = problem(net, dtype)
    logp = run(net, hidden, target)
    (slope * logp.exp() + logp).sum().backward()
    gradients = {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}
    return logp.detach(), hidden.grad, gradients


def plain(net, hidden, target):
    return target_logps(net, hidden, target, chunk=64)


WAYS = [
    pytest.param(lambda net, hidden, target: target_logps(net, hidden, target, chunk=5), id="chunked"),
    pytest.param(lambda net, hidden, target: recomputed_logps(net, hidden, target, 5), id="recomputed"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tied", [False, True])
def test_chunks_change_nothing(way, tied):
    net = network(weight_tying=tied).float()
    expected, found = solved(net, plain), solved(net, way)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-4, atol=1e-6)
    assert found[2].keys() == expected[2].keys() and len(found[2]) == 1
    for name in expected[2]:
        torch.testing.assert_close(found[2][name], expected[2][name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_types_go_through_the_network_s_own_head(dtype, monkeypatch):
    monkeypatch.setattr(token_loss, "_torch_chunked", None)
    net = network().to(dtype)
    expected = solved(net, plain, dtype)
    found = solved(net, lambda *args: target_logps(*args, chunk=5), dtype)
    assert found[0].dtype == (torch.float32 if dtype == torch.bfloat16 else dtype)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-2, atol=1e-3)


def test_a_wrapped_head_is_not_bypassed():
    net = network().float()
    net.at(net.config.names.head).register_forward_hook(lambda module, inputs, output: output * 0.0)
    hidden, target, _ = problem(net)
    uniform = -torch.full((23,), float(TOKENS["vocab_size"])).log()
    torch.testing.assert_close(target_logps(net, hidden, target, chunk=5).detach(), uniform)


def test_small_vocabularies_are_done_at_once(monkeypatch):
    monkeypatch.setattr(token_loss, "recomputed_logps", None)
    monkeypatch.setattr(token_loss, "_torch_chunked", None)
    net = network().float()
    hidden, target, _ = problem(net)
    assert len(target_logps(net, hidden, target)) == 23


def test_without_torch_s_own_chunks_the_fallback_serves(monkeypatch):
    net = network().float()
    expected = solved(net, plain)
    monkeypatch.setattr(token_loss, "has_torch_chunks", lambda: False)
    found = solved(net, lambda *args: target_logps(*args, chunk=5))
    torch.testing.assert_close(found[0], expected[0], rtol=1e-6, atol=1e-6)
    assert isinstance(has_torch_chunks(), bool)
