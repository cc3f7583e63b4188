"""``OpenAIModel``: any model behind an OpenAI-style server, diffusion or autoregressive, as a baseline or a service.

    dict(type=OpenAIModel, path="my-model", url="http://HOST:8000", generation=dict(gen_length=512))

Tokens and latency are the server's and the client's own counts; forwards are unknown. The key is read from the
environment (``key_env``), never from a config. Answers that are finished stay when the server dies: the same command
asks for the rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from opencompass.models.base import BaseModel
from opencompass.models.base_api import APITemplateParser

from dare_eval.engines.openai import KEY_ENV, Answer, OpenAIClient, Sampling, root_of
from dare_eval.engines.patience import HttpOptions
from dare_eval.errors import UsageError
from dare_eval.inferencers.rows import Row
from dare_eval.models.engine import build_options
from dare_eval.models.settings import check_names
from dare_eval.models.texts import HUMAN_BOT_ROUND, GenText, cut_at_stops, messages, row_seeds
from dare_eval.runtime.model_facts import ModelFacts

SEEDS = 2**31
"""Servers take seeds of 31 bits."""


class OpenAIModel(BaseModel):
    """Chat completions; ``OpenAIBaseModel`` is the same for text completions."""

    chat: ClassVar[bool] = True

    def __init__(
        self,
        path: str,
        url: str,
        generation: Mapping[str, Any],
        key_env: str = KEY_ENV,
        server: Mapping[str, Any] | None = None,
        max_seq_len: int = 1 << 20,
        meta_template: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, max_seq_len, meta_template=meta_template)
        if self.chat:
            self.template_parser = APITemplateParser(meta_template or HUMAN_BOT_ROUND)
        self.sampling: Sampling = build_options(Sampling, generation)
        self.client = OpenAIClient(url, path, key_env=key_env, options=build_options(HttpOptions, server))
        self._checked = False

    @classmethod
    def facts(cls, settings: Mapping[str, Any]) -> ModelFacts:
        """Check names and values without asking the server; its weights cannot be known."""
        check_names(cls, settings)
        for name in ("path", "url", "generation"):
            if not settings.get(name):
                raise UsageError(
                    f"{cls.__name__} needs {name}",
                    allowed="path (the served name), url, generation=dict(gen_length=...)",
                )
        root_of(settings["url"])
        sampling: Sampling = build_options(Sampling, settings["generation"])
        build_options(HttpOptions, settings.get("server"))
        described = {**dataclasses.asdict(sampling), "engine": "openai"}
        return ModelFacts(f"{settings['path']} at {settings['url']}", "", None, described)

    def generate(
        self,
        inputs: Sequence[Any],
        max_out_len: int | None = None,
        rows: Sequence[Row] | None = None,
        stopping_criteria: Sequence[str] = (),
    ) -> list[GenText]:
        """Answer one batch, ``server.concurrency`` requests at a time."""
        if not self._checked:
            self.client.check()
            self._checked = True
        wanted = self._wanted(inputs, rows)
        if self.chat:
            answers = self.client.chat([messages(prompt) for prompt in inputs], wanted)
        else:
            answers = self.client.complete([str(prompt) for prompt in inputs], wanted)
        return [self._text(answer, prompt, stopping_criteria) for answer, prompt in zip(answers, inputs, strict=True)]

    def get_token_len(self, prompt: str) -> int:
        """Return the number of words: the tokenizer is the server's."""
        return len(prompt.split())

    def _wanted(self, inputs: Sequence[Any], rows: Sequence[Row] | None) -> list[Sampling]:
        if self.sampling.seed is None:
            return [self.sampling] * len(inputs)
        seeds = row_seeds(self.sampling.seed, rows, [str(prompt) for prompt in inputs])
        return [dataclasses.replace(self.sampling, seed=seed % SEEDS) for seed in seeds]

    @staticmethod
    def _text(answer: Answer, prompt: Any, stops: Sequence[str]) -> GenText:
        text, stopped = cut_at_stops(answer.text, stops)
        return GenText(
            text,
            {
                "generated_tokens": answer.generated_tokens,
                "prompt_tokens": answer.prompt_tokens,
                "wall_s": answer.latency_s,
                "stop": "stop_text" if stopped else answer.stop,
                "prompt": "\n\n".join(turn["content"] for turn in messages(prompt)),
            },
        )


class OpenAIBaseModel(OpenAIModel):
    """Text completions: the prompt is one text without chat turns."""

    chat = False
