"""sdar-30b-a3b-chat on countdown through sglang: Countdown with three numbers, generated with a seed."""

from mmengine.config import read_base

from dare_eval.models.sglang import SGLangModel

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_chat_gen import countdown3_chat_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

models[0]["type"] = SGLangModel
models[0]["abbr"] += "-sglang"
work_dir = "runs/sdar_moe_countdown_sglang"
