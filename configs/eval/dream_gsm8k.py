"""dream-7b-instruct on gsm8k: grade-school mathematics, 4 examples."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as datasets
    from ..models.dream.dream_7b_instruct import models

work_dir = "runs/dream_gsm8k"
