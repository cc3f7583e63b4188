"""llada-moe-instruct on arc_c: ARC challenge, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.ARC_c.ARC_c_gen_1e0de5 import ARC_c_datasets as datasets
    from ..models.llada_moe.llada_moe_instruct import models

work_dir = "runs/llada_moe_arc_c"
