"""A tiny model on HumanEval: the path is what counts, its score is near 0."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.humaneval.humaneval_gen_8e312c import humaneval_datasets as datasets
    from ..models.tiny.tiny_sudoku_code import models

work_dir = "runs/tiny_humaneval"
