from dare_eval.models.sdar import SDARModel

models = [
    dict(
        type=SDARModel,
        abbr="tiny-bd-countdown",
        path="tiny-bd-countdown",
        decoding=dict(gen_length=8, block_length=4, steps=6),
        batch_size=64,
    )
]
