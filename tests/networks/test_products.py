"""Products with few rows: the order of the factors changes their speed, not what they are."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from dare_eval.networks import products
from dare_eval.networks.layers import Linear, RMSNorm

WIDTH = 96


def random_layer(outputs: int, *, bias: bool) -> Linear:
    """Return a layer of ``outputs`` rows of weights."""
    generator = torch.Generator().manual_seed(0)
    layer = Linear(WIDTH, outputs, bias=bias)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=generator)
    return layer


@pytest.fixture
def orders(monkeypatch):
    """Return the orders taken so far; weights of 200 rows are large, and come in pieces of 32 rows."""
    taken: list[str] = []

    def noted(name):
        order = getattr(products, name)

        def run(*args):
            taken.append(name)
            return order(*args)

        return run

    for name in ("weight_first", "in_pieces"):
        monkeypatch.setattr(products, name, noted(name))
    monkeypatch.setattr(products, "LARGE_WEIGHT", 200 * WIDTH)
    monkeypatch.setattr(products, "PIECE_ELEMENTS", 32 * WIDTH)
    return taken


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1,), (2,), (1, 11), (1, 12), (3, 10), (48,), (49,), (2, 1, 5)])
@pytest.mark.parametrize("outputs", [80, 199, 200, 224, 256])
def test_every_order_gives_the_usual_product(shape, outputs, bias, orders):
    layer = random_layer(outputs, bias=bias)
    hidden_XD = torch.randn(*shape, WIDTH, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found_XV = layer(hidden_XD)
        usual_XV = functional.linear(hidden_XD, layer.weight, layer.bias)
    rows = hidden_XD[..., 0].numel()
    expected = ["in_pieces"] * (2 <= rows <= 48) if outputs >= 200 else ["weight_first"] * (12 <= rows <= 48)
    assert orders == expected
    assert found_XV.shape == usual_XV.shape
    assert torch.allclose(found_XV, usual_XV, atol=1e-5)


def test_pieces_take_states_and_weights_of_any_layout(orders):
    base = torch.randn(WIDTH, 240, generator=torch.Generator().manual_seed(2))
    hidden_ND = torch.randn(WIDTH, 7, generator=torch.Generator().manual_seed(3)).T
    with torch.no_grad():
        found_NV = products.product(hidden_ND, base.T)
    assert orders == ["in_pieces"]
    assert torch.allclose(found_NV, hidden_ND @ base, atol=1e-5)


def test_the_usual_order_is_kept_for_gradients_and_other_types(orders):
    layer, hidden_ND = random_layer(240, bias=True), torch.ones(16, WIDTH)
    layer(hidden_ND).sum().backward()
    assert layer.weight.grad is not None and bool((layer.weight.grad == 16.0).all())
    with torch.no_grad():
        assert layer.double()(hidden_ND.double()).dtype == torch.float64
        assert layer.bfloat16()(hidden_ND.bfloat16()).dtype == torch.bfloat16
    assert orders == []


def test_autocast_decides_the_type_of_every_product(orders):
    layer, hidden_ND = random_layer(240, bias=False), torch.ones(16, WIDTH)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found_NV = layer(hidden_ND)
        assert found_NV.dtype == torch.bfloat16
        assert torch.equal(found_NV, functional.linear(hidden_ND, layer.weight))
    assert orders == []


def test_weights_smaller_than_a_piece_and_states_of_no_width(monkeypatch):
    monkeypatch.setattr(products, "LARGE_WEIGHT", 0)
    hidden_ND = torch.randn(7, WIDTH, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        layer = random_layer(5, bias=True)
        assert torch.allclose(layer(hidden_ND), functional.linear(hidden_ND, layer.weight, layer.bias), atol=1e-5)
    monkeypatch.undo()
    with torch.no_grad():
        assert products.product(hidden_ND[:, :0], torch.ones(4, 0)).shape == (7, 4)


def test_a_norm_of_wide_states_and_narrow_weights_is_taken_wide():
    norm = RMSNorm(8, 1e-6).bfloat16()
    hidden_ND = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        norm.weight.copy_(torch.arange(8))
        expected_ND = hidden_ND * (hidden_ND.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * torch.arange(8)
        assert norm(hidden_ND).dtype == torch.float32
        assert torch.allclose(norm(hidden_ND), expected_ND, atol=1e-5)
