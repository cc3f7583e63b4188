"""llada2.1-mini on hellaswag: endings of stories, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.hellaswag.hellaswag_gen_6faab5 import hellaswag_datasets as datasets
    from ..models.llada2.llada2_1_mini import models

work_dir = "runs/llada21_hellaswag"
