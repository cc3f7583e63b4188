"""dream-7b-instruct on mmlu: 57 subjects, 5 examples, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mmlu.mmlu_gen_a484b3 import mmlu_datasets as datasets
    from ..models.dream.dream_7b_instruct import models

work_dir = "runs/dream_mmlu"
