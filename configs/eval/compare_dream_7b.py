"""Dream-7B-Instruct on the benchmarks of the reference system's table of algorithms."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as gsm8k
    from opencompass.configs.datasets.humaneval.humaneval_gen_8e312c import humaneval_datasets as humaneval
    from opencompass.configs.datasets.math.math_0shot_gen_11c4b5 import math_datasets as math
    from opencompass.configs.datasets.mbpp.mbpp_gen_830460 import mbpp_datasets as mbpp
    from ..models.dream.dream_7b_instruct import models

datasets = [*gsm8k, *math, *humaneval, *mbpp]
del gsm8k, math, humaneval, mbpp

work_dir = "runs/compare_dream_7b"
