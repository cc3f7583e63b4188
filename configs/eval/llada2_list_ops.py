"""llada2.0-mini on list_ops: list operations that parallel decoding breaks, generated with a seed."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.list_ops_chat_gen import list_ops_chat_datasets as datasets
    from ..models.llada2.llada2_0_mini import models

work_dir = "runs/llada2_list_ops"
