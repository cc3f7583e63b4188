"""sdar-30b-a3b-chat on mbpp: 500 short Python tasks, 3 examples."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mbpp.mbpp_gen_830460 import mbpp_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_mbpp"
