"""Block diffusion on 400 generated puzzles: the shipped Countdown model, in whose place a trained network stands."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.sudoku4_gen import sudoku4_datasets as datasets
    from ..models.tiny.tiny_bd_countdown import models

models[0]["abbr"] = "tiny-bd-sudoku"
models[0]["decoding"] = dict(gen_length=16, block_length=4, steps=16)
work_dir = "runs/tiny_bd_sudoku"
