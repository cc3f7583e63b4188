from dare_eval.models.replay import ReplayModel

models = [dict(type=ReplayModel, abbr="humaneval-canonical", path="humaneval:canonical", batch_size=64)]
