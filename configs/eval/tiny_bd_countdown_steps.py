"""The shipped block-diffusion Countdown model on 400 held-out problems in 6, 8 and 2 steps; it practises in 6."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_gen import countdown3_datasets as datasets
    from ..models.tiny.tiny_bd_countdown import models as stock

models = [
    dict(stock[0], abbr="6 steps", decoding=dict(gen_length=8, block_length=4, steps=6)),
    dict(stock[0], abbr="8 steps", decoding=dict(gen_length=8, block_length=4, steps=8)),
    dict(stock[0], abbr="2 steps", decoding=dict(gen_length=8, block_length=4, steps=2)),
]
del stock

work_dir = "runs/tiny_bd_countdown_steps"
