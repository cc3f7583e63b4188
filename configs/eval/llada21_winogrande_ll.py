"""llada2.1-mini on winogrande_ll: who is meant, by likelihood of the rest."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.winogrande.winogrande_ll_c5cf57 import winogrande_datasets as winogrande_ll
    from ..models.llada2.llada2_1_mini import models

datasets = [dict(one, abbr=one["abbr"] + "-ll") for one in winogrande_ll]
work_dir = "runs/llada21_winogrande_ll"
