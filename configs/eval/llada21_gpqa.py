"""llada2.1-mini on gpqa: GPQA diamond, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gpqa.gpqa_gen_4baadb import gpqa_datasets as datasets
    from ..models.llada2.llada2_1_mini import models

work_dir = "runs/llada21_gpqa"
