"""SDAR and LLaDA2 through SGLang: offline engine or server.

dict(type=SGLangModel, path="JetLM/SDAR-8B-Chat", decoding=dict(preset="sdar-8b-chat"), url="http://HOST:30000")
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from dare_eval.engines.ends import ends_of
from dare_eval.engines.sglang_clients import SGLangDecoder, connect, start
from dare_eval.engines.sglang_names import VERSION
from dare_eval.engines.sglang_settings import (
    ARCHITECTURES,
    SGLangOptions,
    engine_spec,
    server_arguments,
    write_config,
)
from dare_eval.models.engine import EngineModel
from dare_eval.spec import DecodeSpec


class SGLangModel(EngineModel):
    """A block-diffusion model decoded by SGLang with our algorithm."""

    families = tuple(sorted(ARCHITECTURES))
    options = SGLangOptions
    _decoder: SGLangDecoder | None = None
    _running: DecodeSpec | None = None

    @classmethod
    def engine_spec(cls, spec: DecodeSpec, version: str | None = None) -> DecodeSpec:
        """Return the spec as SGLang runs it."""
        return engine_spec(spec, version or VERSION)

    def start(self, spec: DecodeSpec) -> SGLangDecoder:
        """Return the decoder; an engine of this process is started anew when the spec changes."""
        if self._decoder is None or self._running != spec:
            self._decoder, self._running = self._open(engine_spec(spec, self.engine_options.version)), spec
        return self._decoder

    def _open(self, spec: DecodeSpec) -> SGLangDecoder:
        ends, version = ends_of(self.config, spec), self.engine_options.version
        if self.url:
            return connect(self.url, ends, self.server_options, version)
        if self._decoder is not None:
            self._decoder.calls.do("shutdown")
        file = Path(tempfile.mkdtemp(prefix="dare-sglang-")) / "algorithm.yaml"
        write_config(file, spec, ends)
        return start(server_arguments(str(self.place), spec, file, self.engine_options), ends, version)


class SGLangBaseModel(SGLangModel):
    """The same as a base model: the prompt is one text without chat turns."""

    chat = False
