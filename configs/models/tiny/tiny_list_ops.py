from dare_eval.models.llada import LLaDAModel

models = [
    dict(
        type=LLaDAModel,
        abbr="tiny-list-ops",
        path="tiny-list-ops",
        decoding=dict(gen_length=6, block_length=6, steps=6),
        batch_size=64,
    )
]
