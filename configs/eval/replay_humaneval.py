"""HumanEval's own solutions replayed: 100 with either scorer."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.humaneval.humaneval_gen_8e312c import humaneval_datasets as datasets
    from ..models.replay.humaneval_canonical import models

work_dir = "runs/replay_humaneval"
