"""The shared forward: padding, shift and blocks change nothing they must not change."""

from __future__ import annotations

import pytest
import torch

from dare_eval.networks import build_network
from dare_train.draws import seeded
from dare_train.scorer import Scorer
from tests.golden.recorded import StoredLogits
from tests.train.conftest import ARCHITECTURE

VOCAB, MASK = 30, 1
TOKENS = {"vocab_size": VOCAB, "mask_token_id": MASK, "pad_token_id": 0, "eos_token_id": 2}


def network(**changes):
    return build_network({**ARCHITECTURE, **TOKENS, **changes}, generator=seeded(0), dtype=torch.float64)


def rows(*lengths, seed=0):
    generator = seeded(seed)
    return [torch.randint(3, VOCAB, (length,), generator=generator) for length in lengths]


def padded(sequences, width):
    ids_BT = torch.zeros(len(sequences), width, dtype=torch.long)
    valid_BT = torch.zeros(len(sequences), width, dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        ids_BT[row, : len(sequence)], valid_BT[row, : len(sequence)] = sequence, True
    return ids_BT, valid_BT


def answers(valid_BT, prompt):
    return valid_BT & (torch.arange(valid_BT.shape[1]) >= prompt)


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("shift", [True, False])
def test_padding_is_not_attended_to(pack, shift):
    """C160: rows of length 4 and 8, padded together, cost what each costs alone."""
    score = Scorer(pack=pack, shift=shift)
    net, (short, long) = network(), rows(4, 8)
    ids_BT, valid_BT = padded([short, long], 8)
    chosen_BT = answers(valid_BT, 2)
    together = score(net, ids_BT.masked_fill(chosen_BT, MASK), ids_BT, chosen_BT, valid_BT)
    apart = []
    for sequence in (short, long):
        one_BT, all_BT = padded([sequence], len(sequence))
        chosen = answers(all_BT, 2)
        apart.append(score(net, one_BT.masked_fill(chosen, MASK), one_BT, chosen, all_BT))
    torch.testing.assert_close(together, torch.cat(apart), rtol=0, atol=1e-12)


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("shift", [True, False])
def test_padding_on_the_left_is_padding_too(pack, shift):
    """Also with learned positions and with a first token that is masked."""
    score, net, sequences = Scorer(pack=pack, shift=shift), network(), rows(4, 8)
    ids_BT, valid_BT = padded(sequences, 8)
    chosen_BT = answers(valid_BT, 0)
    right = score(net, ids_BT.masked_fill(chosen_BT, MASK), ids_BT, chosen_BT, valid_BT)
    moved = [tensor.clone() for tensor in (ids_BT, valid_BT, chosen_BT)]
    for tensor in moved:
        tensor[0] = tensor[0].roll(4)
    ids_BT, valid_BT, chosen_BT = moved
    left = score(net, ids_BT.masked_fill(chosen_BT, MASK), ids_BT, chosen_BT, valid_BT)
    torch.testing.assert_close(left, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize("offset", [0, 2])
def test_packed_blocks_are_the_padded_ones_and_so_is_their_gradient(offset):
    """Rows of unequal length end to end, each trimmed to its own blocks; one row has nothing to score."""
    net = network(block_size=4)
    ids_BT, valid_BT = padded(rows(5, 11, 7, 9), 12)
    chosen_BT = answers(valid_BT, 3 + offset) & (torch.rand(ids_BT.shape, generator=seeded(4)) < 0.7)
    chosen_BT[2] = False
    noisy_BT = ids_BT.masked_fill(chosen_BT, MASK)
    score, found = Scorer(block_length=4), []
    for way in (score._by_blocks, score._packed_blocks):
        net.zero_grad()
        logp_X = way(net, noisy_BT, ids_BT, chosen_BT, valid_BT)
        torch.autograd.backward(logp_X.square().sum())
        found.append((logp_X.detach(), torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-9)


def test_blocks_do_not_see_padding_either():
    net, (short, long) = network(block_size=4), rows(5, 11)
    ids_BT, valid_BT = padded([short, long], 12)
    chosen_BT = answers(valid_BT, 2)
    args = (net, ids_BT.masked_fill(chosen_BT, MASK), ids_BT, chosen_BT, valid_BT)
    together = Scorer(block_length=4)(*args)
    apart = []
    for sequence in (short, long):
        one_BT, all_BT = padded([sequence], len(sequence))
        chosen = answers(all_BT, 2)
        args = (net, one_BT.masked_fill(chosen, MASK), one_BT, chosen, all_BT)
        apart.append(Scorer(block_length=4)(*args))
    torch.testing.assert_close(together, torch.cat(apart), rtol=0, atol=1e-12)
    assert torch.isfinite(together).all()


def test_a_shifted_family_reads_the_row_before():
    generator = seeded(1)
    logits = torch.randn(2, 6, VOCAB, generator=generator)
    ids_BT, valid_BT = padded(rows(6, 6), 6)
    chosen_BT = answers(valid_BT, 0)
    shifted = Scorer(shift=True)(StoredLogits(logits), ids_BT, ids_BT, chosen_BT, valid_BT)
    moved = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
    plain = Scorer()(StoredLogits(moved), ids_BT, ids_BT, chosen_BT, valid_BT)
    assert torch.equal(shifted, plain)
    logits[:, -1] += 5.0
    assert torch.equal(shifted, Scorer(shift=True)(StoredLogits(logits), ids_BT, ids_BT, chosen_BT, valid_BT))


@pytest.mark.parametrize("chosen", [(5,), (2, 3), (8, 9, 10), (), (0, 10)])
def test_leaving_out_what_cannot_matter_changes_nothing(chosen):
    net, sequences = network(block_size=4), rows(7, 11)
    ids_BT, valid_BT = padded(sequences, 11)
    chosen_BT = valid_BT & torch.isin(torch.arange(11), torch.tensor(chosen, dtype=torch.long))
    args = (net, ids_BT.masked_fill(chosen_BT, MASK), ids_BT, chosen_BT, valid_BT)
    found = Scorer(block_length=4)(*args)
    torch.testing.assert_close(found, Scorer(block_length=4, trim=False)(*args), rtol=0, atol=1e-12)


def test_one_block_equals_plain_masked_diffusion():
    net, (row,) = network(block_size=8), rows(8)
    ids_BT, valid_BT = padded([row], 8)
    chosen_BT = answers(valid_BT, 3)
    noisy_BT = ids_BT.masked_fill(chosen_BT, MASK)
    blocks = Scorer(block_length=8)(net, noisy_BT, ids_BT, chosen_BT, valid_BT)
    torch.testing.assert_close(blocks, Scorer()(net, noisy_BT, ids_BT, chosen_BT, valid_BT), rtol=0, atol=1e-12)


def test_blocks_of_one_are_autoregressive():
    net, (row,) = network(block_size=1), rows(6)
    ids_BT, valid_BT = padded([row], 6)
    chosen_BT = answers(valid_BT, 0)
    noisy_BT = ids_BT.masked_fill(chosen_BT, MASK)
    found = Scorer(block_length=1)(net, noisy_BT, ids_BT, chosen_BT, valid_BT)
    causal = torch.ones(6, 6, dtype=torch.bool).tril()[None, None]
    for place in range(6):
        state_BT = torch.cat([ids_BT[:, :place], torch.tensor([[MASK]])], dim=1)
        logits = net(state_BT, mask=causal[..., : place + 1, : place + 1])
        assert float(logits.detach().log_softmax(-1)[0, -1, ids_BT[0, place]]) == pytest.approx(
            float(found[place].detach()), abs=1e-6
        )


def test_a_noisy_block_sees_clean_blocks_before_it_and_nothing_else():
    net, (row,) = network(block_size=4), rows(12)
    ids_BT, valid_BT = padded([row], 12)
    second_BT = (torch.arange(12) // 4 == 1)[None]

    def score(clean_BT, noisy_BT):
        return Scorer(block_length=4)(net, noisy_BT, clean_BT, second_BT, valid_BT)

    noisy_BT = ids_BT.masked_fill(torch.arange(12)[None] >= 2, MASK)
    base = score(ids_BT, noisy_BT)
    for place, changes in ((9, False), (6, False), (1, True)):
        other_BT = ids_BT.clone()
        other_BT[0, place] = 3 if ids_BT[0, place] != 3 else 4
        same = torch.where(second_BT, ids_BT, other_BT) if place == 6 else other_BT
        assert torch.equal(score(same, noisy_BT), base) != changes
    other_noise_BT = noisy_BT.clone()
    other_noise_BT[0, [0, 1, 10]] = 7
    assert torch.equal(score(ids_BT, other_noise_BT), base), "noisy tokens of other blocks are invisible"
