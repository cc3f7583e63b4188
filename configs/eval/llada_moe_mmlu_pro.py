"""llada-moe-instruct on mmlu_pro: 14 fields, up to ten options."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mmlu_pro.mmlu_pro_0shot_cot_gen_08c1de import mmlu_pro_datasets as datasets
    from ..models.llada_moe.llada_moe_instruct import models

work_dir = "runs/llada_moe_mmlu_pro"
