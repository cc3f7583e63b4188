"""llada-moe-instruct on ceval: 52 Chinese subjects, validation split."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.ceval.ceval_gen_5f30c7 import ceval_datasets as datasets
    from ..models.llada_moe.llada_moe_instruct import models

work_dir = "runs/llada_moe_ceval"
