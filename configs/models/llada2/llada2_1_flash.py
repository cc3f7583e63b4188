from dare_eval.models.llada2 import LLaDA2Model

models = [
    dict(
        type=LLaDA2Model,
        abbr="llada2.1-flash",
        path="inclusionAI/LLaDA2.1-flash",
        decoding=dict(preset="llada2.1-flash", dtype="bfloat16"),
        device="spread",
        batch_size=8,
        run_cfg=dict(num_gpus=4),
    )
]
