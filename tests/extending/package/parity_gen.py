"""The benchmark's data set config: what is asked, what comes back, who scores it."""

from opencompass.openicl.icl_inferencer import GenInferencer
from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.openicl.icl_retriever import ZeroRetriever
from outside_dllm.benchmark import ParityDataset

from dare_eval.evaluators.score import ScoreEvaluator

parity_datasets = [
    {
        "type": ParityDataset,
        "abbr": "parity",
        "size": 6,
        "reader_cfg": {"input_columns": ["question"], "output_column": "number"},
        "infer_cfg": {
            "prompt_template": {
                "type": PromptTemplate,
                "template": {"round": [{"role": "HUMAN", "prompt": "{question}"}]},
            },
            "retriever": {"type": ZeroRetriever},
            "inferencer": {"type": GenInferencer},
        },
        "eval_cfg": {"evaluator": {"type": ScoreEvaluator, "kind": "parity"}},
    }
]
