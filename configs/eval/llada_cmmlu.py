"""llada-8b-instruct on cmmlu: 67 Chinese subjects."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.cmmlu.cmmlu_0shot_cot_gen_305931 import cmmlu_datasets as datasets
    from ..models.llada.llada_8b_instruct import models

work_dir = "runs/llada_cmmlu"
