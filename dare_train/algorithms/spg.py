"""SPG (arXiv 2510.09541): raises a lower bound of the likelihood of good responses, lowers an upper one of bad ones.

``sum_b -A_b s_b L_b / sum_b L_b`` with s the ELBO per token where A > 0, else half EUBO, half ELBO; no ratio, no KL.
Two noised rows per response at least: with one, both bounds have the same gradient, which is what the reference
system trains (``spg_dare``: the lower bound for all). Block-causal networks noise every block at once instead of one
block of which all later ones would see the clean text.
"""

from dare_train.rl.aggregate import TokenMean
from dare_train.rl.algorithm import Algorithm
from dare_train.rl.corruptors import AllBlocks, RandomBlock
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import SignedBound
from dare_train.rl.surrogate import PolicyGradient

ALGORITHM = Algorithm(
    name="spg",
    about="policy gradient between a lower and an upper likelihood bound",
    paper="2510.09541",
    recorder="final",
    advantage=GroupAdvantage("mean"),
    corruptor=RandomBlock(rows=2, block_length=32, context_rate=0.15),
    reducer=SignedBound(negative="mix", beta=1.5, mix=0.5),
    objective=PolicyGradient(),
    aggregator=TokenMean(),
    updates_per_rollout=4,
    on_blocks={"corruptor": AllBlocks(rows=2, weighted=False)},
    presets={
        "spg_dare": {
            "advantage": {"by_std": True},
            "corruptor": {"rows": 1},
            "reducer": {"negative": "elbo"},
            "loss_region": "all",
            "updates_per_rollout": 1,
        }
    },
)
