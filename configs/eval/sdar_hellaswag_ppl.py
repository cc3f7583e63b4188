"""sdar-8b-chat on hellaswag_ppl: endings of stories by likelihood."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.hellaswag.hellaswag_ppl_47bff9 import hellaswag_datasets as hellaswag_ppl
    from ..models.sdar.sdar_8b_chat import models

datasets = [dict(one, abbr=one["abbr"] + "-ppl") for one in hellaswag_ppl]
work_dir = "runs/sdar_hellaswag_ppl"
