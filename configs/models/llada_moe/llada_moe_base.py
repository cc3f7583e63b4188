from dare_eval.models.llada import LLaDABaseModel

models = [
    dict(
        type=LLaDABaseModel,
        abbr="llada-moe-base",
        path="inclusionAI/LLaDA-MoE-7B-A1B-Base",
        decoding=dict(preset="llada-moe-base", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
