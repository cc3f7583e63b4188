"""llada2.1-mini on math500: MATH, 500 problems."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.math.math_prm800k_500_0shot_cot_gen_11c4b5 import math_datasets as datasets
    from ..models.llada2.llada2_1_mini import models

work_dir = "runs/llada21_math500"
