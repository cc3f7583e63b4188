"""Recorded answers of LLaDA-8B-Instruct on the published Countdown test, at three generation lengths."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_d1_gen import countdown3_d1_datasets as datasets
    from ..models.replay.llada_8b_countdown import models

work_dir = "runs/replay_llada_countdown"
