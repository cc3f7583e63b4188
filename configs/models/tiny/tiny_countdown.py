from dare_eval.models.llada import LLaDAModel

models = [
    dict(
        type=LLaDAModel,
        abbr="tiny-countdown",
        path="tiny-countdown",
        decoding=dict(gen_length=5, block_length=5, steps=3),
        batch_size=64,
    )
]
