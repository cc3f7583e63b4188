"""The shipped list model, operation by operation."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.list_ops_each_gen import list_ops_each_datasets as datasets
    from ..models.tiny.tiny_list_ops import models

work_dir = "runs/tiny_list_ops_each"
