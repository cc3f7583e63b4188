"""sdar-8b-chat on gsm8k through lmdeploy: grade-school mathematics, 4 examples."""

from mmengine.config import read_base

from dare_eval.models.lmdeploy import LMDeployModel

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

models[0]["type"] = LMDeployModel
models[0]["abbr"] += "-lmdeploy"
work_dir = "runs/sdar_gsm8k_lmdeploy"
