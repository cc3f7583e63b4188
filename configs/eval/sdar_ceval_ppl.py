"""sdar-8b-chat on ceval_ppl: 52 Chinese subjects by likelihood."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.ceval.ceval_ppl_578f8d import ceval_datasets as ceval_ppl
    from ..models.sdar.sdar_8b_chat import models

datasets = [dict(one, abbr=one["abbr"] + "-ppl") for one in ceval_ppl]
work_dir = "runs/sdar_ceval_ppl"
