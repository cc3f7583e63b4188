"""The shipped block-diffusion Countdown model on 400 held-out problems."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_gen import countdown3_datasets as datasets
    from ..models.tiny.tiny_bd_countdown import models

work_dir = "runs/tiny_bd_countdown"
