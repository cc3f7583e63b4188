"""llada2.1-mini on livecodebench: code generation, execution and test output."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.livecodebench.livecodebench_gen_a4f90b import LCB_datasets as datasets
    from ..models.llada2.llada2_1_mini import models

work_dir = "runs/llada21_livecodebench"
