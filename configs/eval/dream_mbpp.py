"""dream-7b-instruct on mbpp: 500 short Python tasks, 3 examples."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mbpp.mbpp_gen_830460 import mbpp_datasets as datasets
    from ..models.dream.dream_7b_instruct import models

work_dir = "runs/dream_mbpp"
