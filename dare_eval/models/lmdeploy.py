"""SDAR through LMDeploy: offline pipeline or server.

dict(type=LMDeployModel, path="JetLM/SDAR-8B-Chat", decoding=dict(preset="sdar-8b-chat"), engine=dict(tp=2))
"""

from __future__ import annotations

from dare_eval.engines.ends import EndIds
from dare_eval.engines.lmdeploy import FAMILIES, LMDeployOptions, Server, engine_spec
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
    def engine_spec(cls, spec: DecodeSpec) -> DecodeSpec:
        """Return the spec as LMDeploy runs it."""
        return engine_spec(spec)

    def start(self, spec: DecodeSpec) -> OfflinePipeline | Server:
        """Return the decoder; the rules are the engine's, so another spec needs another engine."""
        if self._decoder is None or self._running != spec:
            wanted, ids = engine_spec(spec), self.config
            stops = tuple({ids.eos_id, *ids.stop_ids, *spec.stop_ids})
            ends = EndIds(eos_id=ids.eos_id, eot_id=ids.eot_id, stop_ids=stops)
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
