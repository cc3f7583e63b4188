"""AIME 2024, every problem answered eight times with other seeds: mean, pass@8 and majority@8."""

from mmengine.config import read_base

with read_base():
    from opencompass.configs.datasets.aime2024.aime2024_gen_17d799 import aime2024_datasets as once

aime2024_datasets = [dict(once[0], abbr="aime2024-repeat8", n=8)]
