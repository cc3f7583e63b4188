"""sdar-30b-a3b-chat on sudoku through lmdeploy: Sudoku 4x4, generated with a seed."""

from mmengine.config import read_base

from dare_eval.models.lmdeploy import LMDeployModel

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.sudoku4_chat_gen import sudoku4_chat_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

models[0]["type"] = LMDeployModel
models[0]["abbr"] += "-lmdeploy"
work_dir = "runs/sdar_moe_sudoku_lmdeploy"
