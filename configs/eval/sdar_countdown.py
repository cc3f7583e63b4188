"""sdar-8b-chat on countdown: Countdown with three numbers, generated with a seed."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_chat_gen import countdown3_chat_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_countdown"
