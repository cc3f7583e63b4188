"""llada2.1-mini on sudoku: Sudoku 4x4, generated with a seed."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.sudoku4_chat_gen import sudoku4_chat_datasets as datasets
    from ..models.llada2.llada2_1_mini import models

work_dir = "runs/llada21_sudoku"
