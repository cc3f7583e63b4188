"""llada-8b-instruct on livecodebench: code generation, execution and test output."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.livecodebench.livecodebench_gen_a4f90b import LCB_datasets as datasets
    from ..models.llada.llada_8b_instruct import models

work_dir = "runs/llada_livecodebench"
