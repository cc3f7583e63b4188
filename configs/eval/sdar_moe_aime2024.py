"""sdar-30b-a3b-chat on aime2024: AIME 2024, 8 answers per problem, seeds differing."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.aime.aime2024_repeat8_gen import aime2024_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_aime2024"
