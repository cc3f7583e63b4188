"""llada-8b-base on arc_c_ppl: ARC challenge by likelihood."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.ARC_c.ARC_c_ppl_a450bd import ARC_c_datasets as arc_c_ppl
    from ..models.llada.llada_8b_base import models

datasets = [dict(one, abbr=one["abbr"] + "-ppl") for one in arc_c_ppl]
work_dir = "runs/llada_arc_c_ppl"
