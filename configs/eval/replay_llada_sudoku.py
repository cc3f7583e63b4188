"""Recorded answers of LLaDA-8B-Instruct on the published Sudoku test, at three generation lengths."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.sudoku4_d1_gen import sudoku4_d1_datasets as datasets
    from ..models.replay.llada_8b_sudoku import models

work_dir = "runs/replay_llada_sudoku"
