"""HumanEval with the tests of EvalPlus, in upstream's wording of the task."""

from mmengine.config import read_base

from dare_eval.datasets.humaneval_plus import HumanEvalPlusDataset
from dare_eval.evaluators.score import ScoreEvaluator

with read_base():
    from opencompass.configs.datasets.humaneval.humaneval_gen_8e312c import humaneval_datasets as original

humaneval_plus_datasets = [
    dict(
        type=HumanEvalPlusDataset,
        abbr="humaneval_plus",
        path="$DARE_DATA/code/humanevalplus.jsonl.gz",
        reader_cfg=dict(original[0]["reader_cfg"], output_column="test"),
        infer_cfg=original[0]["infer_cfg"],
        eval_cfg=dict(
            evaluator=dict(type=ScoreEvaluator, kind="code", metric="pass@1", columns=["prompt", "entry_point"])
        ),
    )
]
