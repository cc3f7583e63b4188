from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dare_eval.networks import AttentionMask, build_network
from tests.networks.helpers import generator, ids_of, left_padded, network_of
from tests.networks.plain import plain_logits
from tests.networks.shapes import ALL, LLADA, LLADA2, SDAR, variations

FAMILIES = sorted(ALL)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(raw=variations(), seed=st.integers(0, 10_000), length=st.integers(1, 9))
def test_any_shape_computes_what_the_plain_loops_compute(raw, seed, length):
    network = network_of(raw, seed, dtype=torch.float64)
    ids = ids_of(1, length, seed)
    block = network.config.block_length or length
    allowed = [[k // block <= q // block for k in range(length)] for q in range(length)]
    with torch.no_grad():
        logits = network(ids)[0]
    expected = plain_logits(raw, network.state_dict(), ids[0].tolist(), allowed)
    torch.testing.assert_close(logits, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_does_not_depend_on_its_batch(family):
    network, ids, keep = network_of(ALL[family]), ids_of(5, 12), left_padded(5, 12)
    with torch.no_grad():
        together = network(ids, mask=AttentionMask.padding(keep))
        for row in range(5):
            alone = network(ids[row : row + 1], mask=AttentionMask.padding(keep[row : row + 1]))
            torch.testing.assert_close(alone[0], together[row], atol=2e-5, rtol=1e-5)
            assert torch.equal(alone[0].argmax(-1), together[row].argmax(-1))


@pytest.mark.parametrize("family", FAMILIES)
def test_left_padding_with_shifted_positions_equals_the_bare_sequence(family):
    network, ids, pads = network_of(ALL[family]), ids_of(1, 8), 4
    block = network.config.block_length
    padded = torch.cat((torch.full((1, pads), network.config.pad_id), ids), dim=1)
    keep, start = torch.arange(12)[None] >= pads, torch.tensor([pads])
    mask = AttentionMask.padding(keep)
    if block:
        mask = AttentionMask.block_causal(12, block, keep_BS=keep, start_B=start)
    with torch.no_grad():
        bare = network(ids)
        shifted = network(padded, mask=mask, positions_BT=(torch.arange(12) - pads).clamp(min=0)[None])
    torch.testing.assert_close(shifted[:, pads:], bare, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_body_and_head_make_up_the_forward_pass(family):
    network, ids = network_of(ALL[family]), ids_of(2, 7)
    with torch.no_grad():
        hidden = network.body(ids)
        assert hidden.shape == (2, 7, 32)
        picked = network.head(hidden[0, 3:5])
        torch.testing.assert_close(picked, network(ids)[0, 3:5], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_reach_every_weight_and_recomputation_changes_none(family):
    network, ids = network_of(ALL[family]).train(), ids_of(4, 12)
    grads = []
    for recompute in (False, True):
        network.gradient_checkpointing = recompute
        network.zero_grad()
        network(ids).logsumexp(-1).sum().backward()
        reached = ((key, value.grad) for key, value in network.named_parameters())
        grads.append({key: grad.clone() for key, grad in reached if grad is not None})
    dense = {key for key, _ in network.named_parameters() if ".experts." not in key}
    assert dense <= {key for key, grad in grads[0].items() if bool(grad.abs().sum() > 0)}
    assert grads[0].keys() == grads[1].keys()
    for key, grad in grads[0].items():
        assert torch.equal(grad, grads[1][key]), key


def test_an_expert_learns_iff_a_token_chose_it_and_has_a_gradient_either_way():
    """Processes that share a network must agree on which gradients there are."""
    network, ids = network_of(LLADA2).train(), ids_of(1, 2)
    network(ids).sum().backward()
    missed = [key for key, value in network.named_parameters() if not value.grad.any()]
    assert missed and all(".experts." in key for key in missed)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision_gives_float32_logits_near_the_full_ones(family, dtype):
    full = network_of(ALL[family])
    half = network_of(ALL[family]).to(dtype)
    ids = ids_of(2, 9)
    with torch.no_grad():
        exact, rounded = full(ids), half(ids)
    assert half.body(ids).dtype == dtype
    assert rounded.dtype == torch.float32
    assert torch.corrcoef(torch.stack((exact.flatten(), rounded.flatten())))[0, 1] > 0.98


def test_learned_positions_index_the_table_by_position():
    network = network_of(LLADA | {"learned_positions": 16})
    assert "model.transformer.wpe.weight" in network.state_dict()
    ids = ids_of(1, 4)
    with torch.no_grad():
        table = network.get_parameter("model.transformer.wpe.weight")
        before = network(ids, positions_BT=torch.tensor([[3, 4, 5, 6]]))
        table[:3] += 1.0
        assert torch.equal(network(ids, positions_BT=torch.tensor([[3, 4, 5, 6]])), before)
        table[5] += 1.0
        assert not torch.allclose(network(ids, positions_BT=torch.tensor([[3, 4, 5, 6]])), before)


def test_a_position_beyond_the_learned_table_is_refused():
    from dare_eval.errors import UsageError

    network = network_of(LLADA | {"learned_positions": 6})
    with pytest.raises(UsageError, match="position table") as caught:
        network(ids_of(1, 7))
    assert "0 .. 5" in str(caught.value)


def test_only_relative_positions_matter_without_a_learned_table():
    network, ids = network_of(LLADA, dtype=torch.float64), ids_of(1, 8)
    with torch.no_grad():
        near = network(ids)
        far = network(ids, positions_BT=torch.arange(8)[None] + 17)
    torch.testing.assert_close(near, far, atol=1e-9, rtol=1e-9)


def test_a_block_causal_network_does_not_see_later_blocks():
    network, ids = network_of(SDAR), ids_of(1, 12)
    changed = ids.clone()
    changed[0, 8:] = (changed[0, 8:] + 5) % 38
    with torch.no_grad():
        a, b = network(ids), network(changed)
    assert torch.equal(a[0, :8].argmax(-1), b[0, :8].argmax(-1))
    torch.testing.assert_close(a[0, :8], b[0, :8], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(a[0, 8:], b[0, 8:])


def test_building_uses_its_generator_only():
    state = torch.get_rng_state()
    first = build_network(LLADA, generator=generator(3)).state_dict()
    second = build_network(LLADA, generator=generator(3)).state_dict()
    other = build_network(LLADA, generator=generator(4)).state_dict()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not torch.equal(first["model.transformer.wte.weight"], other["model.transformer.wte.weight"])


@pytest.mark.parametrize("family", ["llada", "dream", "sdar"])
def test_no_rows_give_no_logits(family):
    network = network_of(ALL[family])
    assert network(torch.zeros(0, 5, dtype=torch.long)).shape == (0, 5, network.config.vocab_size)


def test_a_layer_hands_out_a_tensor_of_its_own():
    network, outputs = network_of(SDAR), []
    for layer in network.layers:
        layer.register_forward_hook(lambda *args: outputs.append(args[2]))
    network(ids_of(2, 5))
    # FSDP2 hooks the output, and loses its hook when somebody changes a view in place.
    assert len(outputs) == network.config.layers
    assert not any(output_BTD._is_view() for output_BTD in outputs)


def test_compiled_layers_take_any_length():
    network, plain = network_of(SDAR), network_of(SDAR)
    for layer in network.layers:
        layer.compile(backend="eager", dynamic=True)
    with torch.no_grad():
        for length in (5, 13, 20, 60):
            assert torch.equal(network(ids_of(2, length)), plain(ids_of(2, length)))
