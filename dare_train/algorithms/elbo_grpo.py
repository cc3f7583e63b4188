"""Plain GRPO (arXiv 2402.03300) whose sequence likelihood is a full ELBO: the simplest combination of the parts.

Ratio ``exp((B - B_old) / L)`` of ELBO estimates with 16 noised rows, std advantages, one update, mean over responses,
and k2 to the start on the whole estimate, divided by the length.
"""

from dare_train.rl.aggregate import Sequences
from dare_train.rl.algorithm import Algorithm, Kl
from dare_train.rl.corruptors import CountMask
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import SequenceMean
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="elbo_grpo",
    about="plain GRPO on the ELBO of the response",
    paper="2402.03300",
    recorder="final",
    advantage=GroupAdvantage("mean", by_std=True),
    corruptor=CountMask(rows=16),
    reducer=SequenceMean(),
    objective=Clipped(0.2, 0.2, per_length=True),
    aggregator=Sequences(),
    kl=Kl(kind="k2", coef=0.04, per_length=True),
)
