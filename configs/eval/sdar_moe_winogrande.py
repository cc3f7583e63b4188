"""sdar-30b-a3b-chat on winogrande: who is meant, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.winogrande.winogrande_gen_458220 import winogrande_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_winogrande"
