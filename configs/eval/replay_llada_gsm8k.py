"""Recorded answers of LLaDA-8B-Instruct on GSM8K, at three generation lengths."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as datasets
    from ..models.replay.llada_8b_gsm8k import models

work_dir = "runs/replay_llada_gsm8k"
