"""List operations for chat models: lists of four to six items, answer in tags; all seven operations."""

from mmengine.config import read_base

with read_base():
    from .list_ops_gen import list_ops_datasets as generated

list_ops_chat_datasets = [
    dict(
        generated[0],
        abbr="list-ops-chat",
        operations=["copy", "reverse", "replace", "insert", "remove", "shuffle", "waiting_line"],
        lengths=[4, 6],
        style="plain",
    )
]
