from dare_eval.models.sdar import SDARModel

models = [
    dict(
        type=SDARModel,
        abbr="sdar-1.7b-chat",
        path="JetLM/SDAR-1.7B-Chat",
        decoding=dict(preset="sdar-1.7b-chat", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
