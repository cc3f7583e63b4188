"""dream-7b-instruct on olympiadbench: olympiad mathematics and physics, 5 sets."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.OlympiadBench.OlympiadBench_0shot_gen_be8b13 import (
        olympiadbench_datasets as datasets,
    )
    from ..models.dream.dream_7b_instruct import models

work_dir = "runs/dream_olympiadbench"
