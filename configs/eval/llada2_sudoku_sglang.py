"""llada2.0-mini on sudoku through sglang: Sudoku 4x4, generated with a seed."""

from mmengine.config import read_base

from dare_eval.models.sglang import SGLangModel

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.sudoku4_chat_gen import sudoku4_chat_datasets as datasets
    from ..models.llada2.llada2_0_mini import models

models[0]["type"] = SGLangModel
models[0]["abbr"] += "-sglang"
work_dir = "runs/llada2_sudoku_sglang"
