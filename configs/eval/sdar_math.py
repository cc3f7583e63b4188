"""sdar-8b-chat on math: MATH, the whole test."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.math.math_0shot_gen_11c4b5 import math_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_math"
