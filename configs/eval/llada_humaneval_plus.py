"""llada-8b-instruct on humaneval_plus: HumanEval with EvalPlus' tests."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.humaneval_plus.humaneval_plus_gen import humaneval_plus_datasets as datasets
    from ..models.llada.llada_8b_instruct import models

work_dir = "runs/llada_humaneval_plus"
