"""sdar-8b-chat on arc_c: ARC challenge, letter generated."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.ARC_c.ARC_c_gen_1e0de5 import ARC_c_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

work_dir = "runs/sdar_arc_c"
