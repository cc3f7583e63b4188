from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dare_eval.networks import AttentionMask
from dare_eval.networks.attention.masks import segment_offsets


def table(mask: AttentionMask, length: int) -> list[list[bool]]:
    dense = mask.dense(torch.arange(length)[None], length)
    assert dense is not None
    return dense[0, 0].tolist()


def test_no_part_means_no_mask():
    assert AttentionMask().dense(torch.arange(4)[None], 4) is None
    assert AttentionMask().is_full


def test_padding_hides_keys_only():
    mask = AttentionMask.padding(torch.tensor([[0, 1, 1]]))
    assert mask.dense(torch.arange(3)[None], 3).expand(1, 1, 3, 3)[0, 0].tolist() == [[False, True, True]] * 3


def test_blocks_see_themselves_and_earlier_ones():
    assert table(AttentionMask.block_causal(5, 2), 5) == [
        [k // 2 <= q // 2 for k in range(5)] for q in range(5)
    ]  # fmt: skip


def test_a_block_grid_may_begin_after_the_padding():
    keep = torch.tensor([[False, True, True, True, True]])
    mask = AttentionMask.block_causal(5, 2, keep_BS=keep, start_B=torch.tensor([1]))
    rows = table(mask, 5)
    assert rows[1] == rows[2] == [False, True, True, False, False]
    assert rows[3] == rows[4] == [False, True, True, True, True]
    assert rows[0] == [True, False, False, False, False]


def test_segments_do_not_see_each_other_and_padding_sees_itself():
    rows = table(AttentionMask.packed(torch.tensor([[0, 0, 1, -1]])), 4)
    assert rows == [
        [True, True, False, False],
        [True, True, False, False],
        [False, False, True, False],
        [False, False, False, True],
    ]


def test_offsets_count_from_the_start_of_each_segment():
    assert segment_offsets(torch.tensor([[7, 7, 7, 2, 2, 7], [1, 2, 3, 4, 5, 6]])).tolist() == [
        [0, 1, 2, 0, 1, 0],
        [0, 0, 0, 0, 0, 0],
    ]


def test_the_training_mask_of_block_diffusion():
    """Noisy block b sees itself and clean blocks before b; clean block b sees clean blocks up to b."""
    rows = table(AttentionMask.noisy_clean(torch.tensor([[0, 0, 0, 0]]), 2), 8)
    assert rows == [
        [True, True, False, False, False, False, False, False],
        [True, True, False, False, False, False, False, False],
        [False, False, True, True, True, True, False, False],
        [False, False, True, True, True, True, False, False],
        [False, False, False, False, True, True, False, False],
        [False, False, False, False, True, True, False, False],
        [False, False, False, False, True, True, True, True],
        [False, False, False, False, True, True, True, True],
    ]


@st.composite
def masks(draw):
    rows, length = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    bits = st.lists(st.lists(st.booleans(), min_size=length, max_size=length), min_size=rows, max_size=rows)
    segments = st.lists(st.lists(st.integers(-1, 2), min_size=length, max_size=length), min_size=rows, max_size=rows)
    keep = torch.tensor(draw(bits))
    kind, block = (
        draw(st.sampled_from(["padding", "blocks", "packed", "packed blocks", "training"])),
        draw(st.integers(1, 4)),
    )
    if kind == "padding":
        return AttentionMask.padding(keep), rows, length
    if kind == "blocks":
        start = keep.int().argmax(dim=1)
        return AttentionMask.block_causal(length, block, keep_BS=keep, start_B=start), rows, length
    segment = torch.tensor(draw(segments)).sort(dim=1).values
    if kind == "training":
        return AttentionMask.noisy_clean(segment, block), rows, 2 * length
    return AttentionMask.packed(segment, block_length=block if kind == "packed blocks" else None), rows, length


@settings(max_examples=150, deadline=None)
@given(drawn=masks(), data=st.data())
def test_the_dense_and_the_functional_form_agree_on_any_columns(drawn, data):
    mask, rows, length = drawn
    columns = torch.tensor([sorted(data.draw(st.sets(st.integers(0, length - 1), min_size=1)))])
    dense = mask.dense(columns, length).expand(rows, 1, columns.shape[1], length)
    function = mask.function(columns)
    for b in range(rows):
        for q in range(columns.shape[1]):
            for k in range(length):
                one = function(*(torch.tensor(index) for index in (b, 0, q, k)))
                assert bool(one) == bool(dense[b, 0, q, k])


@settings(max_examples=60, deadline=None)
@given(drawn=masks())
def test_selecting_rows_selects_their_masks(drawn):
    mask, rows, length = drawn
    columns = torch.arange(length)[None]
    picked = torch.arange(rows).flip(0)
    before = mask.dense(columns, length).expand(rows, 1, -1, length)
    after = mask.select(picked).dense(columns, length).expand(rows, 1, -1, length)
    assert torch.equal(before[picked], after)
