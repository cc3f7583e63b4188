"""llada-8b-instruct on gpqa: GPQA diamond, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gpqa.gpqa_gen_4baadb import gpqa_datasets as datasets
    from ..models.llada.llada_8b_instruct import models

work_dir = "runs/llada_gpqa"
