"""An algorithm: GRPO on two complementary halves of the response, each token scored once."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dare_train.draws import FullDraws
from dare_train.rl.aggregate import TokenMean
from dare_train.rl.algorithm import Algorithm, NetworkFacts
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.noise import Noise
from dare_train.rl.reducers import RowToken
from dare_train.rl.samples import Sample
from dare_train.rl.surrogate import Clipped


@dataclass(frozen=True, slots=True)
class Halves:
    """Two rows: a random share of the response masked, and the rest of it."""

    share: float = 0.5

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return the rows; all random numbers come from ``draws``."""
        first_T = sample.answer_T & (draws.rand(len(sample.ids_T)) < self.share)
        hidden_MT = torch.stack([first_T, sample.answer_T & ~first_T])
        noisy_MT = sample.ids_T.expand(hidden_MT.shape).masked_fill(hidden_MT, facts.mask_id)
        return Noise.of(noisy_MT, hidden_MT & sample.loss_T)


ALGORITHM = Algorithm(
    name="halves",
    about="GRPO on two complementary halves of the response",
    paper="none",
    recorder="final",
    advantage=GroupAdvantage("leave_one_out"),
    corruptor=Halves(),
    reducer=RowToken(),
    objective=Clipped(0.2, 0.2),
    aggregator=TokenMean(),
    presets={"halves_third": {"corruptor": {"share": 0.33}}},
)
