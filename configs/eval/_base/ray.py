"""In place of ``runtime.py``: tasks go to the machines of a running Ray cluster (extra ``ray``).

One worker per group of GPUs. Without ``address`` Ray starts on this machine alone; where no GPU is wanted,
``max_num_workers`` counts.
"""

from dare_eval.runtime.eval_task import DareEvalTask
from dare_eval.runtime.infer_task import DiffusionInferTask
from dare_eval.runtime.partition import EvalPartitioner, InferPartitioner
from dare_eval.runtime.ray_runner import RayRunner
from dare_eval.runtime.summarizer import ReportSummarizer

infer = dict(
    partitioner=dict(type=InferPartitioner, num_worker=8),
    runner=dict(type=RayRunner, address="auto", max_num_workers=8, task=dict(type=DiffusionInferTask)),
)
eval = dict(
    partitioner=dict(type=EvalPartitioner),
    runner=dict(type=RayRunner, address="auto", max_num_workers=8, task=dict(type=DareEvalTask, scorer="both")),
)
summarizer = dict(type=ReportSummarizer)
