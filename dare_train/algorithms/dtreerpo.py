"""d-TreeRPO (arXiv 2512.09675): a tree over denoising steps, rewards of leaves averaged upward, siblings compared.

Tokens that a child fixed are scored in the state of its parent; mean of the clipped loss over them, then over children,
plus k3 to the frozen start and self-distillation from the better siblings (``dare_train.rl.distil``). The tree has 4
children at the root and 4 at each node of the second of 2 levels: 16 leaves.
"""

from dare_train.rl.aggregate import Sequences
from dare_train.rl.algorithm import Algorithm, Kl
from dare_train.rl.credit import TreeAdvantage
from dare_train.rl.distil import SelfDistillation
from dare_train.rl.reducers import RowToken
from dare_train.rl.replays import RecordedState
from dare_train.rl.surrogate import Clipped

ALGORITHM = Algorithm(
    name="dtreerpo",
    about="advantages of siblings in a rollout tree, transition likelihoods",
    paper="2512.09675",
    recorder="tree",
    advantage=TreeAdvantage(),
    corruptor=RecordedState(),
    reducer=RowToken(),
    objective=Clipped(0.4, 0.4),
    aggregator=Sequences(),
    kl=Kl(kind="k3", coef=0.01),
    distil=SelfDistillation(weight=3e-3, growth=2.0, temperature=2.0, decay=0.7),
    updates_per_rollout=12,
    minibatches=5,
    rollout={"root_children": 4, "branch": 4, "levels": 2, "temperature": 0.9},
    presets={"dtreerpo_dare": {"minibatches": 20}},
)
