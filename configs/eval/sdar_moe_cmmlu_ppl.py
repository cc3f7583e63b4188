"""sdar-30b-a3b-chat on cmmlu_ppl: 67 Chinese subjects by likelihood."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.cmmlu.cmmlu_ppl_8b9c76 import cmmlu_datasets as cmmlu_ppl
    from ..models.sdar.sdar_30b_a3b_chat import models

datasets = [dict(one, abbr=one["abbr"] + "-ppl") for one in cmmlu_ppl]
work_dir = "runs/sdar_moe_cmmlu_ppl"
