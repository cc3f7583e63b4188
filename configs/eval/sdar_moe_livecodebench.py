"""sdar-30b-a3b-chat on livecodebench: code generation, execution and test output."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.livecodebench.livecodebench_gen_a4f90b import LCB_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_livecodebench"
