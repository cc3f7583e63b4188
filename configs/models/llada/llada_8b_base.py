from dare_eval.models.llada import LLaDABaseModel

models = [
    dict(
        type=LLaDABaseModel,
        abbr="llada-8b-base",
        path="GSAI-ML/LLaDA-8B-Base",
        decoding=dict(preset="llada-8b-base", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
