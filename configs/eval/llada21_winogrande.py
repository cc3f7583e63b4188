"""llada2.1-mini on winogrande: who is meant, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.winogrande.winogrande_gen_458220 import winogrande_datasets as datasets
    from ..models.llada2.llada2_1_mini import models

work_dir = "runs/llada21_winogrande"
