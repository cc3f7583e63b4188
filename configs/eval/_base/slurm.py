"""In place of ``runtime.py``: one Slurm job per task, by OpenCompass' own runner.

The run folder must be on a shared disk. A job takes as many GPUs as the model's ``run_cfg.num_gpus``; scoring takes
none. ``partition`` and ``extra_command`` are the cluster's: set them in the config that reads this one
(infer["runner"]["partition"] = "gpu").
"""

from opencompass.runners import SlurmSequentialRunner

from dare_eval.runtime.eval_task import DareEvalTask
from dare_eval.runtime.infer_task import DiffusionInferTask
from dare_eval.runtime.partition import EvalPartitioner, InferPartitioner
from dare_eval.runtime.summarizer import ReportSummarizer

infer = dict(
    partitioner=dict(type=InferPartitioner, num_worker=8),
    runner=dict(
        type=SlurmSequentialRunner,
        max_num_workers=64,
        retry=2,
        extra_command=["--time=12:00:00"],
        task=dict(type=DiffusionInferTask),
    ),
)
eval = dict(
    partitioner=dict(type=EvalPartitioner),
    runner=dict(
        type=SlurmSequentialRunner,
        max_num_workers=16,
        retry=2,
        extra_command=["--time=02:00:00"],
        task=dict(type=DareEvalTask, scorer="both"),
    ),
)
summarizer = dict(type=ReportSummarizer)
