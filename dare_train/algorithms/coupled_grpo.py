"""Coupled-GRPO (DiffuCoder, arXiv 2506.20639): d1's loss on three complementary rows per response.

A token's value is ``[l_i(z_full) + l_i(z) / s]/2`` where z masks it, else ``[l_i(z_full) + l_i(complement)/(1-s)]/2``;
s is uniform in 0.2..0.8, drawn for each response and pass (the authors draw one per batch of a process, the reference
system fixes seed 42). The value's mean is about 1.5 log p, so the ratio is a power of the true one.
"""

from dare_train.algorithms.d1 import DARE
from dare_train.rl.aggregate import TokenMean
from dare_train.rl.algorithm import Algorithm, Kl
from dare_train.rl.corruptors import Complementary
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import TokenSum
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="coupled_grpo",
    about="GRPO on complementary masks, every token scored twice",
    paper="2506.20639",
    recorder="final",
    advantage=GroupAdvantage("leave_one_out"),
    corruptor=Complementary(0.2, 0.8),
    reducer=TokenSum(scale=0.5),
    objective=Clipped(0.5, 0.5),
    aggregator=TokenMean(),
    kl=Kl(kind="k3", coef=0.01, sync_every=64, sync_share=0.6),
    updates_per_rollout=2,
    presets={"coupled_grpo_dare": DARE},
)
