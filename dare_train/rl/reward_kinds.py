"""The three built-in judges: the benchmark's verifier, a local sequence-classification model, an HTTP service.

The service gets ``POST {"samples": [{"prompt", "response", "reference", "key"}]}`` and answers
``{"scores": [number]}``.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any, ClassVar

from dare_eval.errors import DataError, SetupError
from dare_eval.scoring import Score, score
from dare_train.rl.rewards import Answer, Judge


def verifier(**options: Any) -> Judge:
    """Return the scorer of the sample's own benchmark; ``options`` go to it as context."""

    def judge(sample: Answer) -> Score:
        return score(sample.scorer, sample.response, sample.reference, **{**sample.context, **options})

    return judge


class RewardModel:
    """A local model that reads prompt and answer and gives one logit (or the logit of ``label``)."""

    in_process: ClassVar[bool] = True

    def __init__(
        self, path: str, *, label: int = 0, max_length: int = 2048, batch_size: int = 16, device: str = "cpu"
    ) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self.label, self.max_length, self.batch_size, self.device = label, max_length, batch_size, device
        try:
            # On the right: absolute positions, where a model has them, then do not depend on the batch.
            self.tokenizer = AutoTokenizer.from_pretrained(path, padding_side="right")
            with torch.random.fork_rng(devices=[]):  # loading draws initial values from the global generator
                self.model = AutoModelForSequenceClassification.from_pretrained(path).to(device).eval()
        except (OSError, ValueError) as error:
            raise DataError(f"the reward model cannot be loaded: {error}", seen=path) from error
        if not 0 <= label < self.model.config.num_labels:
            raise DataError(
                "the reward model has no such label", seen=label, allowed=f"0 to {self.model.config.num_labels - 1}"
            )

    def __call__(self, sample: Answer) -> float:
        """Return the logit of one answer."""
        return self.many([sample])[0]

    def many(self, samples: Sequence[Answer]) -> list[float]:
        """Return the logits of many answers, ``batch_size`` at a time."""
        import torch

        found: list[float] = []
        for start in range(0, len(samples), self.batch_size):
            part = samples[start : start + self.batch_size]
            texts = ([sample.prompt for sample in part], [sample.response for sample in part])
            inputs = self.tokenizer(
                *texts, return_tensors="pt", padding=True, truncation=True, max_length=self.max_length
            )
            with torch.no_grad():
                logits_BL = self.model(**inputs.to(self.device)).logits.float()
            found += logits_BL[:, self.label].tolist()
        return found


class HttpReward:
    """A service that scores answers; a refused or malformed reply leaves the sample unscored."""

    def __init__(self, url: str, *, timeout_s: float = 10.0, headers: dict[str, str] | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise SetupError("a reward service needs an address", seen=url, allowed="http://... or https://...")
        self.url, self.timeout_s, self.headers = url, timeout_s, dict(headers or {})

    def __call__(self, sample: Answer) -> float:
        """Ask for one answer's score; raises ``DataError`` when the service does not give a number."""
        item = {"prompt": sample.prompt, "response": sample.response, "reference": sample.reference, "key": sample.key}
        body = json.dumps({"samples": [item]}, default=str).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json", **self.headers})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as reply:
                answer = json.load(reply)
            return float(answer["scores"][0])
        except (urllib.error.URLError, TimeoutError) as error:
            raise DataError(f"the reward service does not answer: {error}", seen=self.url) from error
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise DataError(f"the reward service answered no score: {error}", seen=self.url) from error
