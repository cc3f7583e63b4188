"""Checks of the golden files about noising processes: recorded draws in, masks and rates out.

Masks are compared where the attention mask is 1, rates at masked positions. Published rounding is switched on where
a file depends on it; ours floors (``tests/train/test_counts.py`` shows why).
"""

from __future__ import annotations

import torch

from dare_train.corruption import all_blocks_noise, complementary_noise, count_noise, full_noise, random_block_noise
from dare_train.corruption.blocks import BlockGrid
from tests.golden.recorded import RecordedDraws, bools


class Row:
    """The one sequence of a file: ids, which columns are prompt, answer, behind the answer."""

    def __init__(self, inputs):
        self.ids_T = torch.tensor(inputs["ids_row"])
        self.valid_T = bools(inputs["attention_mask"])
        response_T = torch.arange(len(self.ids_T)) >= inputs["prompt_len"]
        self.answer_T = response_T & self.valid_T
        self.prompt_T = ~response_T & self.valid_T
        self.after_T = response_T & ~self.valid_T


def compare(found, expected, row):
    masked_BT, noisy_BT = bools(expected["mask"]), torch.tensor(expected["noisy"])
    assert found.masked_BT.shape == masked_BT.shape
    assert torch.equal(found.masked_BT[:, row.valid_T], masked_BT[:, row.valid_T])
    assert torch.equal(found.noisy_BT[:, row.valid_T], noisy_BT[:, row.valid_T])
    both_BT = masked_BT & row.valid_T
    torch.testing.assert_close(found.rate_BT[both_BT], torch.tensor(expected["p_mask"])[both_BT], rtol=2e-5, atol=1e-7)


def check_counts(inputs, params, expected, *, from_zero=False):
    row, draws = Row(inputs), RecordedDraws(inputs["draws_in_order"])
    settings = {"mask_id": params["mask_id"], "rows": inputs["rows"], "from_zero": from_zero, "legacy_rounding": True}
    compare(count_noise(row.ids_T, row.answer_T, draws, **settings), expected, row)
    assert draws.used_up()


def check_counts_from_zero(inputs, params, expected):
    check_counts(inputs, params, expected, from_zero=True)


def check_full(inputs, params, expected):
    row, draws = Row(inputs), RecordedDraws(inputs["draws_in_order"])
    settings = {"mask_id": params["mask_id"], "rows": inputs["rows"], "prompt_rate": params["p"]}
    compare(full_noise(row.ids_T, row.prompt_T, row.answer_T, draws, **settings), expected, row)
    assert draws.used_up()


def check_complementary(inputs, params, expected):
    row, draws = Row(inputs), RecordedDraws(inputs["draws_in_order"])
    found = complementary_noise(row.ids_T, row.answer_T, draws, mask_id=params["mask_id"], rows=inputs["rows"])
    compare(found, expected, row)
    assert draws.used_up()


def check_all_blocks(inputs, params, expected):
    row, draws = Row(inputs), RecordedDraws(inputs["draws_in_order"])
    found = all_blocks_noise(
        row.ids_T,
        row.answer_T,
        row.valid_T,
        draws,
        mask_id=params["mask_id"],
        grid=BlockGrid(params["block_length"], params["block_origin"]),
        rows=inputs["rows"],
        levels=params.get("t"),
    )
    compare(found, expected, row)
    assert draws.used_up()


def check_random_block(inputs, params, expected):
    row, draws = Row(inputs), RecordedDraws(inputs["draws_in_order"])
    found = random_block_noise(
        row.ids_T,
        row.answer_T,
        row.after_T,
        draws,
        mask_id=params["mask_id"],
        grid=BlockGrid(params["block_length"]),
        rows=params["num_t"] * inputs["rows"],
    )
    compare(found, expected, row)
    assert torch.equal(found.masked_BT, bools(expected["mask"])), "behind the answer everything is masked"
    assert draws.used_up()


FORWARD_CHECKS = {
    "forward_bgpo": check_counts,
    "forward_espo": check_counts_from_zero,
    "forward_d1": check_full,
    "forward_coupled": check_complementary,
    "forward_ebpo": check_all_blocks,
    "forward_spg": check_random_block,
}
