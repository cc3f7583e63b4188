"""Sudoku 4x4, 400 generated test puzzles, in the tiny models' wording."""

from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.openicl.icl_retriever import ZeroRetriever

from dare_eval.datasets.sudoku import SudokuDataset
from dare_eval.evaluators.score import ScoreEvaluator
from dare_eval.inferencers.gen import DiffusionGenInferencer

sudoku4_datasets = [
    dict(
        type=SudokuDataset,
        abbr="sudoku4",
        split="test",
        size=400,
        style="tiny",
        reader_cfg=dict(input_columns=["prompt"], output_column="reference"),
        infer_cfg=dict(
            prompt_template=dict(type=PromptTemplate, template=dict(round=[dict(role="HUMAN", prompt="{prompt}")])),
            retriever=dict(type=ZeroRetriever),
            inferencer=dict(type=DiffusionGenInferencer),
        ),
        eval_cfg=dict(evaluator=dict(type=ScoreEvaluator, kind="sudoku")),
    )
]
