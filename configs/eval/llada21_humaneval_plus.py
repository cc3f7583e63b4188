"""llada2.1-mini on humaneval_plus: HumanEval with EvalPlus' tests."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.humaneval_plus.humaneval_plus_gen import humaneval_plus_datasets as datasets
    from ..models.llada2.llada2_1_mini import models

work_dir = "runs/llada21_humaneval_plus"
