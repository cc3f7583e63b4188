from dare_eval.models.llada2 import LLaDA2Model

models = [
    dict(
        type=LLaDA2Model,
        abbr="llada2.0-mini",
        path="inclusionAI/LLaDA2.0-mini",
        decoding=dict(preset="llada2.0-mini", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
