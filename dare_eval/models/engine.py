"""``EngineModel``: what the wrappers of SGLang and LMDeploy share; an engine decodes, everything else stays ours.

Prompts are rendered and tokenised here, exactly as for in-process decoding, and only token ids go to the engine, so
both answer the same prompts. Likelihood tasks are refused: these engines return no log-probabilities of a diffusion
model. ``url`` names a server; without one the engine starts in this process (a GPU is needed).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dare_eval.engines.addresses import check_url
from dare_eval.engines.patience import HttpOptions
from dare_eval.errors import UsageError, unknown
from dare_eval.inferencers.rows import Row
from dare_eval.models.base import STATS, DiffusionModel
from dare_eval.models.texts import GenText, cut_at_stops
from dare_eval.runtime.model_facts import ModelFacts
from dare_eval.spec import DecodeSpec


class EngineModel(DiffusionModel):
    """A diffusion model behind an engine; ``engine`` are the engine's options, ``server`` those of the client."""

    runs_on_cpu: ClassVar[bool] = False
    options: ClassVar[type] = object
    """Dataclass of the engine's options."""

    def __init__(
        self,
        path: str,
        decoding: Mapping[str, Any] | None = None,
        url: str | None = None,
        engine: Mapping[str, Any] | None = None,
        server: Mapping[str, Any] | None = None,
        max_seq_len: int | None = None,
        meta_template: Mapping[str, Any] | None = None,
        long_prompts: str = "refuse",
    ) -> None:
        check_place(url, engine, server)
        self.url = url
        self.engine_options = build_options(self.options, engine)
        self.server_options: HttpOptions = build_options(HttpOptions, server)
        super().__init__(
            path, decoding, max_seq_len=max_seq_len, meta_template=meta_template, long_prompts=long_prompts
        )

    @classmethod
    def facts(cls, settings: Mapping[str, Any]) -> ModelFacts:
        """Check ``settings`` before anything starts: spec, options, no likelihood task."""
        if settings.get("likelihood") is not None:
            raise UsageError(
                f"{cls.__name__} cannot score likelihoods: the engine returns none for a diffusion model",
                seen=settings.get("path"),
                remedy="run this data set with the model's own wrapper (leave --engine out)",
            )
        options = build_options(cls.options, settings.get("engine"))
        build_options(HttpOptions, settings.get("server"))
        check_place(settings.get("url"), settings.get("engine"), settings.get("server"))
        if settings.get("record_x0"):
            raise UsageError(
                f"{cls.__name__} cannot keep the model's guess at every forward: the engine does not tell it",
                seen="record_x0 = True",
                remedy="leave record_x0 out, or the engine",
            )
        native = {key: value for key, value in settings.items() if key not in ("url", "engine", "server")}
        facts = super().facts(native)
        if not facts.decode_spec:
            return facts
        spec = cls.engine_spec(DecodeSpec.from_dict(facts.decode_spec), options.version)
        return dataclasses.replace(facts, decode_spec=spec.to_dict())

    @classmethod
    def engine_spec(cls, spec: DecodeSpec, version: str | None = None) -> DecodeSpec:
        """Return the spec as that release of the engine runs it (None: the one held against).

        Raises ``UsageError`` for what it cannot honour.
        """
        raise TypeError(f"{cls.__name__} defines no engine_spec()")

    def start(self, spec: DecodeSpec) -> Any:
        """Return the decoder of one spec, starting the engine where it is not up."""
        raise TypeError(f"{type(self).__name__} defines no start()")

    def open_network(self, place: Path, dtype: str, device: str, attn_backend: str) -> Any:
        """Remember the folder; the engine starts with the first batch, when the spec is known."""
        self.place = place
        return None

    def use_likelihood(self, settings: Mapping[str, Any]) -> None:
        """Do nothing without settings: likelihood tasks were refused at planning."""
        if settings:
            self.facts({"path": self.path, "likelihood": settings})

    def generate(
        self,
        inputs: Sequence[Any],
        max_out_len: int | None = None,
        rows: Sequence[Row] | None = None,
        stopping_criteria: Sequence[str] = (),
    ) -> list[GenText]:
        """Decode one batch; the seeds are those of in-process decoding, the random numbers the engine's own."""
        if not inputs:
            return []
        prompts, seeds = self.encode_batch(inputs, rows)
        results = self.start(self.spec).generate(
            [one.ids for one in prompts], self.spec, seeds, [one.text for one in prompts]
        )
        answers = []
        for result, one in zip(results, prompts, strict=True):
            text, stopped = cut_at_stops(self.codec.decode(result.tokens), stopping_criteria)
            stats = {name: getattr(result, name) for name in STATS} | {"prompt": one.text}
            stats |= {"stop": "stop_text"} if stopped else {}
            answers.append(GenText(text, {**stats, "cut_tokens": one.cut_tokens}))
        return answers


def check_place(url: Any, engine: Mapping[str, Any] | None, server: Mapping[str, Any] | None) -> None:
    """Refuse options of a server without one, options of an own engine beside a server, and no address."""
    if url is not None:
        check_url(url)
        idle = sorted(set(engine or {}) - {"version"})
        if idle:
            raise UsageError(
                "a server has its own layout, so options of an engine in this process have no effect",
                seen=", ".join(f"engine.{name}" for name in idle),
                allowed="engine.version beside url",
                remedy="start the server with them, or leave url out",
            )
    elif server:
        raise UsageError(
            "options of a server's client have no effect without a server",
            seen=", ".join(f"server.{name}" for name in sorted(server)),
            remedy="give url, or leave server out",
        )


def build_options(kind: type, given: Mapping[str, Any] | None) -> Any:
    """Return a dataclass of options; raises ``UsageError`` for an unknown or missing name."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if not isinstance(given or {}, Mapping):
        raise UsageError(f"{kind.__name__} is no dict of options", seen=given, allowed=", ".join(fields))
    for name in given or {}:
        if name not in fields:
            raise unknown(f"option of {kind.__name__}", name, fields)
    needed = [name for name, field in fields.items() if field.default is field.default_factory is dataclasses.MISSING]
    for name in needed:
        if name not in (given or {}):
            raise UsageError(f"{kind.__name__} needs {name}", seen=given, allowed=", ".join(fields))
    return kind(**(given or {}))
