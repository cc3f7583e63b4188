from dare_eval.models.llada import LLaDAModel

models = [
    dict(
        type=LLaDAModel,
        abbr="llada-moe-instruct",
        path="inclusionAI/LLaDA-MoE-7B-A1B-Instruct",
        decoding=dict(preset="llada-moe-instruct", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
