"""Recorded answers of LLaDA-8B-Instruct on MATH-500, at three generation lengths."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.math.math_prm800k_500_0shot_cot_gen import math_datasets as datasets
    from ..models.replay.llada_8b_math500 import models

work_dir = "runs/replay_llada_math500"
