"""llada2.1-mini on mmlu_ppl: 57 subjects, 5 examples, by likelihood."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mmlu.mmlu_ppl_ac766d import mmlu_datasets as mmlu_ppl
    from ..models.llada2.llada2_1_mini import models

datasets = [dict(one, abbr=one["abbr"] + "-ppl") for one in mmlu_ppl]
work_dir = "runs/llada21_mmlu_ppl"
