"""llada-8b-instruct on math: MATH, the whole test."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.math.math_0shot_gen_11c4b5 import math_datasets as datasets
    from ..models.llada.llada_8b_instruct import models

work_dir = "runs/llada_math"
