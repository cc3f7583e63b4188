"""sdar-30b-a3b-chat on cmmlu: 67 Chinese subjects."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.cmmlu.cmmlu_0shot_cot_gen_305931 import cmmlu_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_cmmlu"
