"""ESPO (arXiv 2512.03759): the whole response is one action, scored by a coupled ELBO.

``-min(rho A, clip(rho) A) + beta (B - B_ref)^2 / (2 R)``, ``rho = exp((B - B_old) / R)``, mean over responses; each
mask of 0..L tokens comes with its complement. ``espo_countdown`` and ``espo_code`` are the authors' other recipes: with
``clip = 0`` only the pessimistic side moves.
"""

from dare_train.rl.aggregate import Sequences
from dare_train.rl.algorithm import Algorithm, Kl
from dare_train.rl.corruptors import CountAndComplement
from dare_train.rl.credit import GroupAdvantage
from dare_train.rl.reducers import SequenceMean
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="espo",
    about="sequence ratio from a coupled ELBO per token",
    paper="2512.03759",
    recorder="final",
    advantage=GroupAdvantage("leave_one_out"),
    corruptor=CountAndComplement(pairs=2),
    reducer=SequenceMean(),
    objective=Clipped(0.2, 0.2, per_length=True),
    aggregator=Sequences(),
    kl=Kl(kind="k2", coef=1e-3, per_length=True, sync_every=64, sync_share=0.6),
    loss_region="all",
    updates_per_rollout=8,
    presets={
        "espo_countdown": {"objective": {"clip_low": 0.0, "clip_high": 0.0}, "kl": {"coef": 3e-3}},
        "espo_code": {"kl": {"coef": 1e-2}},
        "espo_sudoku_dare": {"kl": {"coef": 1e-2}},
    },
)
