"""The published Sudoku test of d1 (rows of the share): any valid completion, and the published padded cell score."""

from mmengine.config import read_base

with read_base():
    from .sudoku4_gen import sudoku4_datasets as generated

sudoku4_d1_datasets = [
    dict(
        generated[0],
        abbr="sudoku4-d1",
        path="$DARE_DATA/planning/sudoku_test.jsonl",
        source="d1",
        style="d1_eval",
        eval_cfg=dict(evaluator=dict(generated[0]["eval_cfg"]["evaluator"], presets=["d1_pad"])),
    )
]
