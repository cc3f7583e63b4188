"""sdar-8b-chat on bbh: 27 BIG-Bench hard tasks."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.bbh.bbh_gen_ee62e9 import bbh_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_bbh"
