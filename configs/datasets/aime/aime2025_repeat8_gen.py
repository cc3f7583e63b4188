"""AIME 2025, every problem answered eight times with other seeds: mean, pass@8 and majority@8."""

from mmengine.config import read_base

with read_base():
    from .aime2025_gen import aime2025_datasets as once

aime2025_datasets = [dict(once[0], abbr="aime2025-repeat8", n=8)]
