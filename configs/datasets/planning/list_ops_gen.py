"""List operations, 400 generated lists of four items, in the tiny models' wording."""

from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.openicl.icl_retriever import ZeroRetriever

from dare_eval.datasets.list_ops import ListOpsDataset
from dare_eval.evaluators.score import ScoreEvaluator
from dare_eval.inferencers.gen import DiffusionGenInferencer

list_ops_datasets = [
    dict(
        type=ListOpsDataset,
        abbr="list-ops",
        split="test",
        size=400,
        operations=[
            "copy",
            "reverse",
            "replace",
            "insert",
            "remove",
            "shuffle",
            "waiting_line",
            "replace_any",
            "insert_any",
            "remove_any",
        ],
        lengths=[4, 4],
        style="tiny",
        reader_cfg=dict(input_columns=["prompt"], output_column="reference"),
        infer_cfg=dict(
            prompt_template=dict(type=PromptTemplate, template=dict(round=[dict(role="HUMAN", prompt="{prompt}")])),
            retriever=dict(type=ZeroRetriever),
            inferencer=dict(type=DiffusionGenInferencer),
        ),
        eval_cfg=dict(evaluator=dict(type=ScoreEvaluator, kind="list_ops")),
    )
]
