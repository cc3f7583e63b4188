"""LLaDA-8B-Instruct on the four benchmarks of d1 at 128, 256 and 512 tokens, two tokens per step."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as gsm8k
    from opencompass.configs.datasets.math.math_prm800k_500_0shot_cot_gen_11c4b5 import math_datasets as math500
    from ..datasets.planning.countdown3_chat_gen import countdown3_chat_datasets as countdown
    from ..datasets.planning.sudoku4_chat_gen import sudoku4_chat_datasets as sudoku
    from ..models.llada.llada_8b_instruct import models as stock

models = [
    dict(
        stock[0],
        abbr=f"{length} tokens",
        decoding=dict(gen_length=length, block_length=32, steps=length // 2, dtype="bfloat16"),
    )
    for length in (256, 128, 512)
]
datasets = [*gsm8k, *math500, *sudoku, *countdown]
del stock, gsm8k, math500, sudoku, countdown

work_dir = "runs/d1_llada_8b"
