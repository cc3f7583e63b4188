from dare_eval.models.sdar import SDARModel

models = [
    dict(
        type=SDARModel,
        abbr="sdar-4b-chat",
        path="JetLM/SDAR-4B-Chat",
        decoding=dict(preset="sdar-4b-chat", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
