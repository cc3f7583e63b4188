"""sdar-30b-a3b-chat on humaneval_plus: HumanEval with EvalPlus' tests."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.humaneval_plus.humaneval_plus_gen import humaneval_plus_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_humaneval_plus"
