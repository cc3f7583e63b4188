from dare_eval.models.llada import LLaDAModel

models = [
    dict(
        type=LLaDAModel,
        abbr="llada-1.5",
        path="GSAI-ML/LLaDA-1.5",
        decoding=dict(preset="llada-1.5", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
