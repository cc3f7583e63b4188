"""sdar-8b-chat on gsm8k: grade-school mathematics, 4 examples."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_gsm8k"
