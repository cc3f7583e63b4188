"""llada-8b-instruct on aime2025: AIME 2025, 8 answers per problem, seeds differing."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.aime.aime2025_repeat8_gen import aime2025_datasets as datasets
    from ..models.llada.llada_8b_instruct import models

work_dir = "runs/llada_aime2025"
