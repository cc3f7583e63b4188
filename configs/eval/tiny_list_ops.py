"""The shipped list model on 400 lists it has not seen."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.list_ops_gen import list_ops_datasets as datasets
    from ..models.tiny.tiny_list_ops import models

work_dir = "runs/tiny_list_ops"
