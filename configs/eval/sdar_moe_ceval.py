"""sdar-30b-a3b-chat on ceval: 52 Chinese subjects, validation split."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.ceval.ceval_gen_5f30c7 import ceval_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_ceval"
