"""Held-out problems solved greedily during training: the curve of the score that counts.

Decoded as the rollout is, at temperature 0; judged by the verifier alone, whatever the run is rewarded with. The
score of the finished model comes from the evaluation that follows, on other items.
"""

from __future__ import annotations

from dare_train.rl.backends import RolloutBackend
from dare_train.rl.parts import Parts
from dare_train.rl.records import answer_of
from dare_train.rl.rollout import Sampler


def heldout_scores(parts: Parts, backend: RolloutBackend) -> dict[str, list[float]]:
    """Return 1 or 0 for each held-out problem of this process; an unscored one is left out."""
    share = parts.world.share(list(enumerate(parts.heldout)))
    sampler = Sampler(
        backend=backend,
        tokenizer=parts.tokenizer,
        spec=parts.heldout_spec,
        group_size=1,
        rows_per_batch=parts.rows_per_batch or parts.prompts * parts.group_size,
        seed=parts.seed,
    )
    rollouts = sampler.groups(share, states=False)
    outcomes = parts.verifier.submit([answer_of(rollout, parts.heldout_spec) for rollout in rollouts]).result()
    return {"exact": [outcome.exact for outcome in outcomes if outcome.exact is not None]}
