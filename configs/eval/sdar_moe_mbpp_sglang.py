"""sdar-30b-a3b-chat on mbpp through sglang: 500 short Python tasks, 3 examples."""

from mmengine.config import read_base

from dare_eval.models.sglang import SGLangModel

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mbpp.mbpp_gen_830460 import mbpp_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

models[0]["type"] = SGLangModel
models[0]["abbr"] += "-sglang"
work_dir = "runs/sdar_moe_mbpp_sglang"
