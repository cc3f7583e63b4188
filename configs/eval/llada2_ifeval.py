"""llada2.0-mini on ifeval: instructions that a program can check."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.IFEval.IFEval_gen_353ae7 import ifeval_datasets as datasets
    from ..models.llada2.llada2_0_mini import models

work_dir = "runs/llada2_ifeval"
