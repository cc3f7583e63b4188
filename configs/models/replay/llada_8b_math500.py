from dare_eval.models.replay import ReplayModel

models = [
    dict(
        type=ReplayModel,
        abbr=f"llada-8b-instruct-recorded-{length}",
        path="$DARE_DATA/recorded/llada8b_instruct_math500.jsonl.gz",
        questions="$DARE_DATA/data/math/test_prm800k_500.jsonl",
        gen_length=length,
        batch_size=64,
    )
    for length in (128, 256, 512)
]
