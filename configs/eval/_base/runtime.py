"""How every evaluation runs: planned by fingerprint, forked from one interpreter, scored twice, reported honestly."""

from dare_eval.runtime.eval_task import DareEvalTask
from dare_eval.runtime.fork_runner import ForkRunner
from dare_eval.runtime.infer_task import DiffusionInferTask
from dare_eval.runtime.partition import EvalPartitioner, InferPartitioner
from dare_eval.runtime.summarizer import ReportSummarizer

infer = dict(
    partitioner=dict(type=InferPartitioner),
    runner=dict(type=ForkRunner, max_num_workers=2, task=dict(type=DiffusionInferTask)),
)
eval = dict(
    partitioner=dict(type=EvalPartitioner),
    runner=dict(type=ForkRunner, max_num_workers=2, task=dict(type=DareEvalTask, scorer="both")),
)
summarizer = dict(type=ReportSummarizer)
