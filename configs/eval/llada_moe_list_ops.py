"""llada-moe-instruct on list_ops: list operations that parallel decoding breaks, generated with a seed."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.list_ops_chat_gen import list_ops_chat_datasets as datasets
    from ..models.llada_moe.llada_moe_instruct import models

work_dir = "runs/llada_moe_list_ops"
