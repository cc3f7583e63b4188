"""llada-moe-instruct on winogrande: who is meant, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.winogrande.winogrande_gen_458220 import winogrande_datasets as datasets
    from ..models.llada_moe.llada_moe_instruct import models

work_dir = "runs/llada_moe_winogrande"
