"""llada-moe-instruct on math500: MATH, 500 problems."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.math.math_prm800k_500_0shot_cot_gen_11c4b5 import math_datasets as datasets
    from ..models.llada_moe.llada_moe_instruct import models

work_dir = "runs/llada_moe_math500"
