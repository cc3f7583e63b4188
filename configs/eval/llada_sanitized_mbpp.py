"""llada-8b-instruct on sanitized_mbpp: MBPP, the checked subset."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from opencompass.configs.datasets.mbpp.sanitized_mbpp_gen_742f0c import sanitized_mbpp_datasets as datasets
    from ..models.llada.llada_8b_instruct import models

work_dir = "runs/llada_sanitized_mbpp"
