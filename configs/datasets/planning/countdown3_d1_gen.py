"""The published Countdown test of d1 (rows of the share), three numbers."""

from mmengine.config import read_base

with read_base():
    from .countdown3_gen import countdown3_datasets as generated

countdown3_d1_datasets = [
    dict(
        generated[0],
        abbr="countdown3-d1",
        path="$DARE_DATA/planning/countdown_test.jsonl",
        source="d1",
        style="d1_eval",
    )
]
