"""dream-7b-instruct on aime2025: AIME 2025, 8 answers per problem, seeds differing."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.aime.aime2025_repeat8_gen import aime2025_datasets as datasets
    from ..models.dream.dream_7b_instruct import models

work_dir = "runs/dream_aime2025"
