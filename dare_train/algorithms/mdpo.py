"""MDPO (arXiv 2508.13148): every intermediate prediction of a denoising run is rewarded and trained on.

At the 16 steps with the largest advantages, for every still masked token with confidence kappa:
``kappa [lambda (-min(rho A, clip(rho) A)) + beta k2]`` over masked tokens, ``lambda = R / masked``. Not defined on
block-causal networks. ``mdpo_dare`` follows the reference system; KL is off there because its switch is.
"""

from dare_train.rl.aggregate import MaskedMean
from dare_train.rl.algorithm import Algorithm, Kl
from dare_train.rl.credit import StepAdvantage
from dare_train.rl.reducers import RowToken
from dare_train.rl.replays import RecordedState
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="mdpo",
    about="rewards and trains intermediate predictions of the denoising run",
    paper="2508.13148",
    recorder="states",
    advantage=StepAdvantage(top_k=16, by_std=True, delta=1e-4),
    corruptor=RecordedState(),
    reducer=RowToken(),
    objective=Clipped(0.2, 0.2),
    aggregator=MaskedMean(),
    kl=Kl(kind="k2", coef=0.02),
    loss_region="all",
    temperature="rollout",
    undefined={
        "block": "it rewards the predicted whole response at every step, and a network that attends block by block "
        "predicts no tokens beyond the block at work"
    },
    presets={
        "mdpo_dare": {
            "advantage": {"delta": 1e-6},
            "objective": {"dual_clip": 3.0},
            "kl": {"coef": 0.0},
            "temperature": "one",
        }
    },
)
