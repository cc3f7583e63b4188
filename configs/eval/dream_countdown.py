"""dream-7b-instruct on countdown: Countdown with three numbers, generated with a seed."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_chat_gen import countdown3_chat_datasets as datasets
    from ..models.dream.dream_7b_instruct import models

work_dir = "runs/dream_countdown"
