"""llada-8b-instruct on mmlu_pro: 14 fields, up to ten options."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mmlu_pro.mmlu_pro_0shot_cot_gen_08c1de import mmlu_pro_datasets as datasets
    from ..models.llada.llada_8b_instruct import models

work_dir = "runs/llada_mmlu_pro"
