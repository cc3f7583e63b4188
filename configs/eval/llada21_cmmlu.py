"""llada2.1-mini on cmmlu: 67 Chinese subjects."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.cmmlu.cmmlu_0shot_cot_gen_305931 import cmmlu_datasets as datasets
    from ..models.llada2.llada2_1_mini import models

work_dir = "runs/llada21_cmmlu"
