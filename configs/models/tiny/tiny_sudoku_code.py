from dare_eval.models.llada import LLaDAModel

models = [
    dict(
        type=LLaDAModel,
        abbr="tiny-sudoku",
        path="tiny-sudoku",
        decoding=dict(gen_length=16, block_length=16, steps=4),
        long_prompts="cut",
        batch_size=64,
    )
]
