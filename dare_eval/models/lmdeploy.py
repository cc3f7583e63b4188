"""SDAR through LMDeploy: offline pipeline or server.

dict(type=LMDeployModel, path="JetLM/SDAR-8B-Chat", decoding=dict(preset="sdar-8b-chat"), engine=dict(tp=2))
"""

from __future__ import annotations

from dare_eval.engines.ends import ends_of
from dare_eval.engines.lmdeploy import FAMILIES, VERSION, LMDeployOptions, Server, engine_spec
from dare_eval.engines.lmdeploy_pipeline import OfflinePipeline
from dare_eval.models.engine import EngineModel
from dare_eval.spec import DecodeSpec


class LMDeployModel(EngineModel):
    """A block-diffusion model decoded by LMDeploy's PyTorch engine."""

    families = FAMILIES
    options = LMDeployOptions
    _decoder: OfflinePipeline | Server | None = None
    _running: DecodeSpec | None = None

    @classmethod
    def engine_spec(cls, spec: DecodeSpec, version: str | None = None) -> DecodeSpec:
        """Return the spec as LMDeploy runs it."""
        return engine_spec(spec, version or VERSION)

    def start(self, spec: DecodeSpec) -> OfflinePipeline | Server:
        """Return the decoder; the rules are the engine's, so another spec needs another engine."""
        if self._decoder is None or self._running != spec:
            wanted, ends = engine_spec(spec, self.engine_options.version), ends_of(self.config, spec)
            if isinstance(self._decoder, OfflinePipeline):
                self._decoder.close()  # the old engine's memory goes before the new one starts
            if self.url:
                self._decoder = Server(self.url, ends, self.server_options)
            else:
                self._decoder = OfflinePipeline(str(self.place), wanted, self.engine_options, ends)
            self._running = spec
        return self._decoder


class LMDeployBaseModel(LMDeployModel):
    """The same as a base model: the prompt is one text without chat turns."""

    chat = False
