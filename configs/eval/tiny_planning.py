"""Both shipped models, each on its own puzzle."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_gen import countdown3_datasets as countdown
    from ..datasets.planning.sudoku4_gen import sudoku4_datasets as sudoku
    from ..models.tiny.tiny_countdown import models as for_countdown
    from ..models.tiny.tiny_sudoku import models as for_sudoku

models, datasets = [*for_sudoku, *for_countdown], [*sudoku, *countdown]
model_dataset_combinations = [dict(models=m, datasets=d) for m, d in ((for_sudoku, sudoku), (for_countdown, countdown))]
work_dir = "runs/tiny_planning"
