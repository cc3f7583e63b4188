from dare_eval.models.llada import LLaDAModel

models = [
    dict(
        type=LLaDAModel,
        abbr="llada-8b-instruct",
        path="GSAI-ML/LLaDA-8B-Instruct",
        decoding=dict(preset="llada-8b-instruct", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
