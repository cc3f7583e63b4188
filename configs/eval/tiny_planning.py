"""Both shipped models, each on its own puzzle."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_gen import countdown3_datasets
    from ..datasets.planning.sudoku4_gen import sudoku4_datasets
    from ..models.tiny.tiny_countdown import models as countdown_models
    from ..models.tiny.tiny_sudoku import models as sudoku_models

models = [*sudoku_models, *countdown_models]
datasets = [*sudoku4_datasets, *countdown3_datasets]
model_dataset_combinations = [
    dict(models=sudoku_models, datasets=sudoku4_datasets),
    dict(models=countdown_models, datasets=countdown3_datasets),
]
work_dir = "runs/tiny_planning"
