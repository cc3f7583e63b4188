"""llada2.0-mini on olympiadbench: olympiad mathematics and physics, 5 sets."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.OlympiadBench.OlympiadBench_0shot_gen_be8b13 import (
        olympiadbench_datasets as datasets,
    )
    from ..models.llada2.llada2_0_mini import models

work_dir = "runs/llada2_olympiadbench"
