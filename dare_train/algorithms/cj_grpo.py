"""CJ-GRPO (arXiv 2509.23924): each token is scored in the state in which the rollout really fixed it.

``1/K sum_k [ sum_(b, i fixed at k) (-min(rho A, clip(rho) A) + beta k3) / tokens fixed at k ]``. On block-causal
networks all blocks replay at once, a response's weights add up to 1 (mean over the tokens of a transition, then over
transitions), and a block that EOS cut short is replayed whole: its tail is part of the same outcome. The same weights
are ``cj_grpo_transition`` elsewhere. A sampler that takes tokens back leaves no step map and cannot be used.
"""

from dare_train.algorithms.d1 import DARE
from dare_train.rl.aggregate import StepMean, TransitionMean
from dare_train.rl.algorithm import Algorithm, Kl
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import RowToken
from dare_train.rl.replays import ReplaySteps
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="cj_grpo",
    about="GRPO on the replayed denoising trajectory",
    paper="2509.23924",
    recorder="step_map",
    advantage=GroupAdvantage("mean"),
    corruptor=ReplaySteps(),
    reducer=RowToken(),
    objective=Clipped(0.5, 0.5),
    aggregator=StepMean(),
    kl=Kl(kind="k3", coef=0.04, sync_every=64, sync_share=0.6),
    updates_per_rollout=8,
    on_blocks={"aggregator": TransitionMean(), "loss_region": "to_eos_block"},
    presets={
        "cj_grpo_dare": {**DARE, "aggregator": StepMean(all_steps=True)},
        "cj_grpo_transition": {"aggregator": TransitionMean()},
    },
)
