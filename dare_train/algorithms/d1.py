"""d1, diffu-GRPO (arXiv 2504.12216): GRPO on a one-step estimate of token likelihoods.

``sum_bi [-min(rho A_b, clip(rho) A_b) + beta k3] / tokens``, ``rho = exp(l_i(z_full) - old)``: the whole response is
masked, prompt tokens with rate 0.15. Constants are those of the authors' trainer; ``d1_dare`` is the reference
system's recipe, in which nothing is ever clipped because it makes one update per rollout. On block-causal networks
every block is masked whole and sees the clean blocks before it; the prompt is read clean, so it gets no noise.
"""

from dare_train.rl.aggregate import TokenMean
from dare_train.rl.algorithm import Algorithm, Kl
from dare_train.rl.corruptors import FullMask
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import TokenSum
from dare_train.rl.surrogate import Clipped

DARE = {
    "advantage": {"baseline": "mean", "by_std": True},
    "objective": {"clip_low": 0.2, "clip_high": 0.2, "dual_clip": 3.0},
    "kl": {"coef": 0.0},
    "loss_region": "all",
    "updates_per_rollout": 1,
}
"""What the reference system's recipes share: std advantages, no KL, one update, every position of the response."""

ALGORITHM = Algorithm(
    name="d1",
    about="GRPO on one-step token likelihoods, whole response masked",
    paper="2504.12216",
    recorder="final",
    advantage=GroupAdvantage("mean"),
    corruptor=FullMask(prompt_rate=0.15),
    reducer=TokenSum(),
    objective=Clipped(0.5, 0.5),
    aggregator=TokenMean(),
    kl=Kl(kind="k3", coef=0.04, sync_every=64, sync_share=0.6),
    updates_per_rollout=12,
    on_blocks={"corruptor": FullMask(prompt_rate=0.0)},
    presets={"d1_dare": DARE},
)
