"""sdar-30b-a3b-chat on list_ops: list operations that parallel decoding breaks, generated with a seed."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.list_ops_chat_gen import list_ops_chat_datasets as datasets
    from ..models.sdar.sdar_30b_a3b_chat import models

work_dir = "runs/sdar_moe_list_ops"
