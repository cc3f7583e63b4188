"""Countdown with three numbers for chat models: the generated problems, reasoning and answer in tags."""

from mmengine.config import read_base

with read_base():
    from .countdown3_gen import countdown3_datasets as generated

countdown3_chat_datasets = [dict(generated[0], abbr="countdown3-chat", style="d1_eval")]
