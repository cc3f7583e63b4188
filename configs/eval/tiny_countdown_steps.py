"""The shipped Countdown model on 400 held-out problems in 3, 5 and 1 decoding steps; 3 is what it practises in."""

from mmengine.config import read_base

with read_base():
    from ._base.runtime import *
    from ..datasets.planning.countdown3_gen import countdown3_datasets as datasets
    from ..models.tiny.tiny_countdown import models as stock

models = [
    dict(stock[0], abbr="3 steps", decoding=dict(gen_length=5, block_length=5, steps=3)),
    dict(stock[0], abbr="5 steps", decoding=dict(gen_length=5, block_length=5, steps=5)),
    dict(stock[0], abbr="1 step", decoding=dict(gen_length=5, block_length=5, steps=1)),
]
del stock

work_dir = "runs/tiny_countdown_steps"
