"""Models, data sets and evaluators that fail on purpose or answer at once; named by dotted path in test configs."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from datasets import Dataset
from opencompass.datasets.base import BaseDataset
from opencompass.models.base import BaseModel
from opencompass.openicl.icl_evaluator import BaseEvaluator


class SumDataset(BaseDataset):
    """Additions: ``i + 1 =`` with the answer ``i + 1``."""

    @staticmethod
    def load(size: int = 12, start: int = 0):
        return Dataset.from_list([{"question": f"{i} + 1 =", "answer": str(i + 1)} for i in range(start, start + size)])


class SumModel(BaseModel):
    """Answers additions; each decoded question goes into the log named by FAKE_LOG."""

    def __init__(self, path="", wrong_from=10**9, raise_at=None, kill_at=None, sleep_s=0.0, generation_kwargs=None):
        super().__init__(path, generation_kwargs=generation_kwargs or {})
        self.wrong_from, self.raise_at, self.kill_at, self.sleep_s = wrong_from, raise_at, kill_at, sleep_s

    def generate(self, inputs, max_out_len=None):
        numbers = [int(str(text).split()[0]) for text in inputs]
        if self.raise_at in numbers:
            raise ValueError(f"cannot answer {self.raise_at}")
        if self.kill_at in numbers and not Path(os.environ["FAKE_LOG"] + ".spared").exists():
            Path(os.environ["FAKE_LOG"] + ".spared").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.sleep_s)
        with Path(os.environ["FAKE_LOG"] + ".devices").open("a") as log:
            log.write(os.environ.get("CUDA_VISIBLE_DEVICES", "unset") + "\n")
        with Path(os.environ["FAKE_LOG"]).open("a") as log:
            log.write("".join(f"{number}\n" for number in numbers))
        return [str(number + 1 if number < self.wrong_from else 0) for number in numbers]

    def get_token_len(self, prompt):
        return len(prompt)


class UnplannableModel(SumModel):
    """A wrapper whose description of itself raises what no one expects."""

    @classmethod
    def facts(cls, settings):
        raise KeyError("layers")


class SumEvaluator(BaseEvaluator):
    """Exact match with one detail per item."""

    def __init__(self, offset=0):
        super().__init__()
        self.offset = offset

    def score(self, predictions, references):
        details = [
            {"pred": p, "answer": r, "correct": int(p) == int(r) + self.offset}
            for p, r in zip(predictions, references, strict=True)
        ]
        return {"accuracy": 100 * sum(d["correct"] for d in details) / len(details), "details": details}


class RaisingEvaluator(BaseEvaluator):
    """Raises on its first item."""

    def score(self, predictions, references):
        raise RuntimeError(f"no verdict on {predictions[0]}")


class TotalEvaluator(BaseEvaluator):
    """Gives one number and no details, as several stock evaluators do."""

    def score(self, predictions, references):
        return {"accuracy": 100 * sum(p == r for p, r in zip(predictions, references, strict=True)) / len(predictions)}
