"""sdar-8b-chat on countdown through lmdeploy: Countdown with three numbers, generated with a seed."""

from mmengine.config import read_base

from dare_eval.models.lmdeploy import LMDeployModel

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_chat_gen import countdown3_chat_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

models[0]["type"] = LMDeployModel
models[0]["abbr"] += "-lmdeploy"
work_dir = "runs/sdar_countdown_lmdeploy"
