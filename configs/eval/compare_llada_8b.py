"""LLaDA-8B-Instruct on the benchmarks of the reference system's table of algorithms."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as gsm8k
    from opencompass.configs.datasets.humaneval.humaneval_gen_8e312c import humaneval_datasets as humaneval
    from opencompass.configs.datasets.math.math_0shot_gen_11c4b5 import math_datasets as math
    from opencompass.configs.datasets.mbpp.mbpp_gen_830460 import mbpp_datasets as mbpp
    from ..datasets.planning.countdown3_chat_gen import countdown3_chat_datasets as countdown
    from ..datasets.planning.sudoku4_chat_gen import sudoku4_chat_datasets as sudoku
    from ..models.llada.llada_8b_instruct import models

datasets = [*gsm8k, *math, *humaneval, *mbpp, *countdown, *sudoku]
del gsm8k, math, humaneval, mbpp, countdown, sudoku

work_dir = "runs/compare_llada_8b"
