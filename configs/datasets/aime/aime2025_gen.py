"""AIME 2025 with the prompt of AIME 2024 and no judge model; upstream has judged variants only."""

from mmengine.config import read_base
from opencompass.datasets import CustomDataset

with read_base():
    from opencompass.configs.datasets.aime2024.aime2024_gen_17d799 import aime2024_datasets as year_before

aime2025_datasets = [dict(year_before[0], type=CustomDataset, abbr="aime2025", path="opencompass/aime2025")]
