"""sdar-8b-chat on mbpp: 500 short Python tasks, 3 examples."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mbpp.mbpp_gen_830460 import mbpp_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_mbpp"
