"""sdar-30b-a3b-chat on bbh: 27 BIG-Bench hard tasks."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.bbh.bbh_gen_ee62e9 import bbh_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_bbh"
