"""EBPO (LLaDA2.1, arXiv 2602.08676): one sequence ratio from the ELBO of all blocks in one doubled forward per row.

``log rho = mean_n sum_b [log p(y_b | z_n, x) - old]``, not divided by the length, clipped; mean over sequences. Two
passes over the rows, because the ratio needs their mean. Only block-causal networks score all blocks at once.
"""

from dare_train.rl.aggregate import Sequences
from dare_train.rl.algorithm import Algorithm, Kl
from dare_train.rl.corruptors import AllBlocks
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import SequenceMean
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="ebpo",
    about="sequence ratio from block likelihoods, all blocks at once",
    paper="2602.08676",
    recorder="final",
    advantage=GroupAdvantage("mean", by_std=True),
    corruptor=AllBlocks(rows=16),
    reducer=SequenceMean(),
    objective=Clipped(0.2, 0.2),
    aggregator=Sequences(),
    kl=Kl(kind="k2", coef=0.0),
    undefined={
        "masked": "it scores every block beside the clean text of the blocks before it in one forward, and a network "
        "that attends in both directions would read the answer from the clean copy"
    },
)
