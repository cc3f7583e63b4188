"""List operations, one data set per operation, to see which of them a decoding rule breaks."""

from mmengine.config import read_base

with read_base():
    from .list_ops_gen import list_ops_datasets as generated

list_ops_each_datasets = [
    dict(generated[0], abbr="list-" + name.replace("_", "-"), operations=[name], size=100)
    for name in generated[0]["operations"]
]
