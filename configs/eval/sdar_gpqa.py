"""sdar-8b-chat on gpqa: GPQA diamond, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gpqa.gpqa_gen_4baadb import gpqa_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_gpqa"
