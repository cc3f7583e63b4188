"""Chat and text completions of any server that speaks the OpenAI protocol: text, usage, latency.

No tokenizer is downloaded: tokens are counted by the server. Leaves out streaming, tools, several answers per request
and log-probabilities.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dare_eval.engines.addresses import check_url
from dare_eval.engines.counts import check_counts, check_sampling
from dare_eval.engines.http import HttpClient, bad_reply, need, need_mapping
from dare_eval.engines.patience import HttpOptions
from dare_eval.errors import DataError, SetupError, UsageError

STOPS = {"length": "length", "stop": "eos"}
KEY_ENV = "OPENAI_API_KEY"
"""Used where it is set; any other name that is given must be."""
OURS = ("model", "messages", "prompt", "max_tokens", "temperature", "top_p", "seed", "stream", "n", "best_of", "echo")
"""Keys of a request that ``extra`` does not replace: they are recorded, or would change what a reply is."""


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
        check_counts(self, "gen_length")
        check_sampling(self)
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0):
            raise UsageError("seed is out of range", seen=self.seed, allowed="a whole number >= 0, or None")
        if not isinstance(self.extra or {}, Mapping):
            raise UsageError("extra is no dict of request keys", seen=self.extra, allowed="dict(top_k=20)")
        taken = sorted(set(self.extra or {}) & set(OURS))
        if taken:
            raise UsageError(
                "extra replaces what the run records, or the form of a reply",
                seen=", ".join(taken),
                allowed="keys that are not " + ", ".join(OURS),
                remedy="use gen_length, temperature, top_p and seed of generation; repeats are n of the data set",
            )


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

    def __init__(self, url: str, model: str, *, key_env: str = KEY_ENV, options: HttpOptions | None = None) -> None:
        self.model, options = model, options or HttpOptions()
        if os.environ.get(key_env) or key_env != KEY_ENV:
            options = replace(options, key_env=key_env)
        self.http = HttpClient(root_of(url), options)

    def check(self) -> None:
        """Raise ``SetupError`` when the server does not list the model."""
        reply = self.http.get("/v1/models")
        models = need(reply, "data")
        if not isinstance(models, list) or not all(isinstance(one, Mapping) and "id" in one for one in models):
            raise bad_reply(reply, "has another form than its protocol says", "data: a list of models, each with an id")
        listed = [str(one["id"]) for one in models]
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
    choice, choices = need_mapping(reply, "choices", 0), need(reply, "choices")
    if len(choices) != 1:
        raise bad_reply(reply, "holds another number of answers than was asked for", "choices: 1")
    usage = reply.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    stop = str(choice.get("finish_reason") or "")
    text = need(choice, *place)
    if not isinstance(text, str | None):
        raise bad_reply(reply, "has another form than its protocol says", f"{'/'.join(place)}: a text")
    return Answer(
        _plain(text or ""),
        STOPS.get(stop, stop),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        latency_s,
    )


def root_of(url: str) -> str:
    """Return the address that request paths are added to; raises ``UsageError`` for the address of one request."""
    root = check_url(url).removesuffix("/v1")
    if root.endswith(("/completions", "/models", "/responses")):
        raise UsageError(
            "the server's address is that of one request",
            seen=url,
            allowed="http://HOST:PORT or http://HOST:PORT/v1",
            remedy="leave out what follows /v1",
        )
    return root


def _plain(text: str) -> str:
    """Return the text; raises ``DataError`` for halves of surrogate pairs, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            "the server's answer is no valid text", seen=ascii(text)[:200], remedy="see the server's tokenizer"
        ) from error
    return text


def _count(value: Any) -> int | None:
    """Return a number of tokens; None when the server tells none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
