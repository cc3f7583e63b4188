"""Sudoku 4x4 for chat models: the generated puzzles, reasoning and answer in tags."""

from mmengine.config import read_base

with read_base():
    from .sudoku4_gen import sudoku4_datasets as generated

sudoku4_chat_datasets = [dict(generated[0], abbr="sudoku4-chat", style="d1_eval")]
