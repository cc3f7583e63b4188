"""The noising processes of all objectives; every random number of training is drawn here, from an explicit source.

    rates     each answer token masked with a rate per row or per block (SFT)
    counts    a drawn number of answer tokens masked, stratified over rows (ELBO of VRPO, BGPO, ESPO)
    response  the whole answer, or complementary halves of it, and noise on the prompt (d1, Coupled-GRPO)
    blocks    one block and all after it, or some tokens of every block (SPG, EBPO)

A corruption is stored once and scored as often as needed, so policy, old policy and reference see the same masks.
"""

from dare_train.corruption.blocks import all_blocks_noise, random_block_noise
from dare_train.corruption.counts import count_noise, spread_counts
from dare_train.corruption.rates import block_rates, mask_at_rates, rate_slope, scheduled, sequence_rates
from dare_train.corruption.record import Corruption
from dare_train.corruption.response import complementary_noise, full_noise

__all__ = [
    "Corruption",
    "all_blocks_noise",
    "block_rates",
    "complementary_noise",
    "count_noise",
    "full_noise",
    "mask_at_rates",
    "random_block_noise",
    "rate_slope",
    "scheduled",
    "sequence_rates",
    "spread_counts",
]
