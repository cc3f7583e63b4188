"""sdar-30b-a3b-chat on gpqa: GPQA diamond, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gpqa.gpqa_gen_4baadb import gpqa_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_gpqa"
