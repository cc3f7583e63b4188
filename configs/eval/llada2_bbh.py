"""llada2.0-mini on bbh: 27 BIG-Bench hard tasks."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.bbh.bbh_gen_ee62e9 import bbh_datasets as datasets
    from ..models.llada2.llada2_0_mini import models

work_dir = "runs/llada2_bbh"
