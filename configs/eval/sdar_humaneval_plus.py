"""sdar-8b-chat on humaneval_plus: HumanEval with EvalPlus' tests."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.humaneval_plus.humaneval_plus_gen import humaneval_plus_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_humaneval_plus"
