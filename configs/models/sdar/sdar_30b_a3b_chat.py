from dare_eval.models.sdar import SDARModel

models = [
    dict(
        type=SDARModel,
        abbr="sdar-30b-a3b-chat",
        path="JetLM/SDAR-30B-A3B-Chat",
        decoding=dict(preset="sdar-30b-a3b-chat", dtype="bfloat16"),
        batch_size=8,
        run_cfg=dict(num_gpus=1),
    )
]
