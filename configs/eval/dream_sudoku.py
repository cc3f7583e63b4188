"""dream-7b-instruct on sudoku: Sudoku 4x4, generated with a seed."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.sudoku4_chat_gen import sudoku4_chat_datasets as datasets
    from ..models.dream.dream_7b_instruct import models

work_dir = "runs/dream_sudoku"
