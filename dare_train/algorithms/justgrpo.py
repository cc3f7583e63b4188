"""JustGRPO (arXiv 2601.15165): no arbitrary order in training; left-to-right rollouts and exact chain-rule scores.

``sum_t -A rho_t / (R (responses with an advantage + 1e-5))`` with ``rho = exp(l_t - sg l_t) = 1``: a policy gradient
with one update. Each token is one forward, built when it is scored. ``justgrpo_dare`` averages over tokens.
"""

from dare_train.rl.aggregate import ActiveResponses, TokenMean
from dare_train.rl.algorithm import Algorithm
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import RowToken
from dare_train.rl.replays import LeftToRight
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="justgrpo",
    about="left-to-right rollouts, exact token likelihoods",
    paper="2601.15165",
    recorder="final",
    advantage=GroupAdvantage("mean", by_std=True, delta=1e-4),
    corruptor=LeftToRight(),
    reducer=RowToken(),
    objective=Clipped(0.2, 0.2),
    aggregator=ActiveResponses(),
    loss_region="all",
    temperature="rollout",
    rollout={"block_length": 1},
    undefined={"block": "it fixes and scores one token after the other, which needs blocks of one token"},
    defined_blocks=(1,),
    presets={"justgrpo_dare": {"aggregator": TokenMean(), "objective": {"dual_clip": 3.0}}},
)
