"""sdar-30b-a3b-chat on gpqa_ppl: GPQA diamond by likelihood."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gpqa.gpqa_ppl_6bf57a import gpqa_datasets as gpqa_ppl
    from ..models.sdar.sdar_30b_a3b_chat import models

datasets = [dict(one, abbr=one["abbr"] + "-ppl") for one in gpqa_ppl]
work_dir = "runs/sdar_moe_gpqa_ppl"
