"""The shipped Sudoku model on 400 generated puzzles."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.sudoku4_gen import sudoku4_datasets as datasets
    from ..models.tiny.tiny_sudoku import models

work_dir = "runs/tiny_sudoku"
