"""sdar-30b-a3b-chat on winogrande_ll: who is meant, by likelihood of the rest."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.winogrande.winogrande_ll_c5cf57 import winogrande_datasets as winogrande_ll
    from ..models.sdar.sdar_30b_a3b_chat import models

datasets = [dict(one, abbr=one["abbr"] + "-ll") for one in winogrande_ll]
work_dir = "runs/sdar_moe_winogrande_ll"
