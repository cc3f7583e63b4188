from dare_eval.models.replay import ReplayModel

models = [
    dict(
        type=ReplayModel,
        abbr=f"llada-8b-instruct-recorded-{length}",
        path="$DARE_DATA/recorded/llada8b_instruct_sudoku.jsonl.gz",
        gen_length=length,
        batch_size=64,
    )
    for length in (128, 256, 512)
]
