"""BGPO (arXiv 2510.11683): a bound of the sequence objective that is a sum over Monte-Carlo rows.

With d_j the change of row j's ELBO per token: ratio ``1 + d_j`` where A > 0, ``exp(d_j)`` elsewhere, clipped, mean
over rows; responses weigh by their length. Both are pessimistic bounds, and each row is trained by itself, so memory
does not grow with their number. Lengths are the counted ones; ``bgpo_dare`` divides by the padded length.
"""

from dare_train.rl.aggregate import TokenMean
from dare_train.rl.algorithm import Algorithm
from dare_train.rl.corruptors import CountMask
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import RowSum
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="bgpo",
    about="lower bound of the sequence ratio, one Monte-Carlo row at a time",
    paper="2510.11683",
    recorder="final",
    advantage=GroupAdvantage("mean", by_std=True),
    corruptor=CountMask(rows=16),
    reducer=RowSum(),
    objective=Clipped(0.2, 0.2, per_length=True, ratio="signed"),
    aggregator=TokenMean(),
    presets={"bgpo_dare": {"objective": {"dual_clip": 3.0}, "loss_region": "all"}},
)
