from dare_eval.models.dream import DreamModel

models = [
    dict(
        type=DreamModel,
        abbr="dream-7b-instruct",
        path="Dream-org/Dream-v0-Instruct-7B",
        decoding=dict(preset="dream-7b-instruct", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
