"""sdar-30b-a3b-chat on math500 through lmdeploy: MATH, 500 problems."""

from mmengine.config import read_base

from dare_eval.models.lmdeploy import LMDeployModel

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.math.math_prm800k_500_0shot_cot_gen_11c4b5 import math_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

models[0]["type"] = LMDeployModel
models[0]["abbr"] += "-lmdeploy"
work_dir = "runs/sdar_moe_math500_lmdeploy"
