"""sdar-8b-chat on sudoku through sglang: Sudoku 4x4, generated with a seed."""

from mmengine.config import read_base

from dare_eval.models.sglang import SGLangModel

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.sudoku4_chat_gen import sudoku4_chat_datasets as datasets
    from ..models.sdar.sdar_8b_chat import models

models[0]["type"] = SGLangModel
models[0]["abbr"] += "-sglang"
work_dir = "runs/sdar_sudoku_sglang"
