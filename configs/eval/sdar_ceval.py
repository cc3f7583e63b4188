"""sdar-8b-chat on ceval: 52 Chinese subjects, validation split."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.ceval.ceval_gen_5f30c7 import ceval_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_ceval"
