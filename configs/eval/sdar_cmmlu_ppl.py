"""sdar-8b-chat on cmmlu_ppl: 67 Chinese subjects by likelihood."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.cmmlu.cmmlu_ppl_8b9c76 import cmmlu_datasets as cmmlu_ppl
    from ..models.sdar.sdar_8b_chat import models

datasets = [dict(one, abbr=one["abbr"] + "-ppl") for one in cmmlu_ppl]
work_dir = "runs/sdar_cmmlu_ppl"
