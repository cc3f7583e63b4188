"""Parts of the networks by themselves: products with few rows."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from dare_eval.networks.layers import Linear, few_rows


@pytest.mark.parametrize("bias", [False, True])
def test_few_rows_give_the_product_of_the_usual_order(bias):
    generator = torch.Generator().manual_seed(0)
    layer = Linear(96, 80, bias=bias)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=generator)
        for shape in ((1, 11), (1, 12), (3, 10), (1, 48), (49,)):
            hidden_XD = torch.randn(*shape, 96, generator=generator)
            usual_XV = functional.linear(hidden_XD, layer.weight, layer.bias)
            assert few_rows(hidden_XD, layer.weight) == (12 <= hidden_XD[..., 0].numel() <= 48)
            assert torch.allclose(layer(hidden_XD), usual_XV, atol=1e-5)


def test_the_usual_order_is_kept_for_gradients_and_half_precision():
    hidden_ND, weight_VD = torch.randn(16, 8, generator=torch.Generator().manual_seed(0)), torch.ones(4, 8)
    assert not few_rows(hidden_ND, weight_VD)
    with torch.no_grad():
        assert few_rows(hidden_ND, weight_VD)
        assert not few_rows(hidden_ND.bfloat16(), weight_VD.bfloat16())
