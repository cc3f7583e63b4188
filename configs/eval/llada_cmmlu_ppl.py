"""llada-8b-base on cmmlu_ppl: 67 Chinese subjects by likelihood."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.cmmlu.cmmlu_ppl_8b9c76 import cmmlu_datasets as cmmlu_ppl
    from ..models.llada.llada_8b_base import models

datasets = [dict(one, abbr=one["abbr"] + "-ppl") for one in cmmlu_ppl]
work_dir = "runs/llada_cmmlu_ppl"
