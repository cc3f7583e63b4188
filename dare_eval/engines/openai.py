"""Chat and text completions of any server that speaks the OpenAI protocol: text, usage, latency.

No tokenizer is downloaded: tokens are counted by the server. Leaves out streaming, tools and log-probabilities.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dare_eval.engines.http import HttpClient, HttpOptions, need
from dare_eval.errors import SetupError, UsageError

STOPS = {"length": "length", "stop": "eos"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What a request asks for; None leaves it to the server."""

    gen_length: int
    """``max_tokens`` of a request."""
    temperature: float = 0.0
    top_p: float | None = None
    seed: int | None = 0
    """Base seed; each row gets one of its own derived from it. None: send none (servers without the field)."""
    extra: Mapping[str, Any] | None = None
    """Further keys of the request, for servers that have more (``top_k``, ``chat_template_kwargs``, ...)."""

    def __post_init__(self) -> None:
        """Refuse values that no server takes."""
        if isinstance(self.gen_length, bool) or not isinstance(self.gen_length, int) or self.gen_length < 1:
            raise UsageError("gen_length is no count", seen=self.gen_length, allowed=">= 1")
        if self.temperature < 0:
            raise UsageError("temperature is negative", seen=self.temperature, allowed=">= 0")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError("top_p is out of range", seen=self.top_p, allowed="(0, 1]")


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply."""

    text: str
    stop: str
    """``eos`` or ``length``; another word is the server's own."""
    prompt_tokens: int | None
    generated_tokens: int | None
    latency_s: float


class OpenAIClient:
    """One model of one server."""

    def __init__(
        self, url: str, model: str, *, key_env: str = "OPENAI_API_KEY", options: HttpOptions | None = None
    ) -> None:
        self.model, options = model, options or HttpOptions()
        key = os.environ.get(key_env, "")
        if key:
            options = replace(options, headers={**options.headers, "Authorization": f"Bearer {key}"})
        self.http = HttpClient(url.rstrip("/").removesuffix("/v1"), options)

    def check(self) -> None:
        """Raise ``SetupError`` when the server does not list the model."""
        listed = [str(one.get("id")) for one in need(self.http.get("/v1/models"), "data")]
        if listed and self.model not in listed:
            raise SetupError(
                f"the server has no model '{self.model}'",
                seen=self.http.url,
                allowed=", ".join(listed),
                remedy="set path to one of these names",
            )

    def chat(self, conversations: Sequence[list[dict[str, str]]], wanted: Sequence[Sampling]) -> list[Answer]:
        """Answer conversations, in order."""
        bodies = [{"messages": turns, **self._body(one)} for turns, one in zip(conversations, wanted, strict=True)]
        return self._ask("/v1/chat/completions", bodies, ("message", "content"))

    def complete(self, texts: Sequence[str], wanted: Sequence[Sampling]) -> list[Answer]:
        """Continue texts, in order."""
        bodies = [{"prompt": text, **self._body(one)} for text, one in zip(texts, wanted, strict=True)]
        return self._ask("/v1/completions", bodies, ("text",))

    def _body(self, wanted: Sampling) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": wanted.gen_length,
            "temperature": wanted.temperature,
            "top_p": wanted.top_p,
            "seed": wanted.seed,
        }
        return {key: value for key, value in body.items() if value is not None} | dict(wanted.extra or {})

    def _ask(self, path: str, bodies: Sequence[Mapping[str, Any]], place: tuple[str, ...]) -> list[Answer]:
        from concurrent.futures import ThreadPoolExecutor

        def one(body: Mapping[str, Any]) -> Answer:
            started = time.perf_counter()
            reply = self.http.post(path, body)
            return answer_of(reply, place, time.perf_counter() - started)

        with ThreadPoolExecutor(max_workers=self.http.options.concurrency) as pool:
            return list(pool.map(one, bodies))


def answer_of(reply: Any, place: tuple[str, ...], latency_s: float) -> Answer:
    """Return what a reply says; an empty answer is an answer, a missing one a ``DataError``."""
    choice = need(reply, "choices", 0)
    usage = reply.get("usage") or {}
    stop = str(choice.get("finish_reason") or "")
    return Answer(
        str(need(choice, *place) or ""),
        STOPS.get(stop, stop),
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        latency_s,
    )
