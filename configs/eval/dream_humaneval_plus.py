"""dream-7b-instruct on humaneval_plus: HumanEval with EvalPlus' tests."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.humaneval_plus.humaneval_plus_gen import humaneval_plus_datasets as datasets
    from ..models.dream.dream_7b_instruct import models

work_dir = "runs/dream_humaneval_plus"
