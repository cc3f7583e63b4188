from dare_eval.models.dream import DreamBaseModel

models = [
    dict(
        type=DreamBaseModel,
        abbr="dream-7b-base",
        path="Dream-org/Dream-v0-Base-7B",
        decoding=dict(preset="dream-7b-base", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
