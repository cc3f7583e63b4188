"""Countdown with three numbers, 400 held-out problems, in the tiny models' wording."""

from mmengine.config import read_base

from dare_eval.datasets.countdown import CountdownDataset
from dare_eval.evaluators.score import ScoreEvaluator

with read_base():
    from .sudoku4_gen import sudoku4_datasets as sudoku

countdown3_datasets = [
    dict(
        sudoku[0],
        type=CountdownDataset,
        abbr="countdown3",
        eval_cfg=dict(evaluator=dict(type=ScoreEvaluator, kind="countdown")),
    )
]
