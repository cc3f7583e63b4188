"""Config text of the fakes."""

from __future__ import annotations

HEAD = """
from opencompass.openicl.icl_inferencer import GenInferencer
from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.openicl.icl_retriever import ZeroRetriever
from tests.runtime.fakes import RaisingEvaluator, SumDataset, SumEvaluator, SumModel

reader = dict(input_columns=["question"], output_column="answer")
prompts = dict(
    prompt_template=dict(type=PromptTemplate, template=dict(round=[dict(role="HUMAN", prompt="{question}")])),
    retriever=dict(type=ZeroRetriever),
    inferencer=dict(type=GenInferencer),
)
right = dict(evaluator=dict(type=SumEvaluator))
"""


def model(abbr: str = "sums", *, batch_size: int = 4, kind: str = "SumModel", **settings: object) -> str:
    listed = "".join(f", {key}={value!r}" for key, value in settings.items())
    return f"dict(type={kind}, abbr={abbr!r}, batch_size={batch_size}{listed})"


def dataset(abbr: str = "add", evaluation: str = "right", kind: str = "SumDataset", **settings: object) -> str:
    listed = "".join(f", {key}={value!r}" for key, value in settings.items())
    return f"dict(type={kind}, abbr={abbr!r}, reader_cfg=reader, infer_cfg=prompts, eval_cfg={evaluation}{listed})"


def config(models: list[str], datasets: list[str], extra: str = "") -> str:
    return f"{HEAD}\n{extra}\nmodels = [{', '.join(models)}]\ndatasets = [{', '.join(datasets)}]\n"
