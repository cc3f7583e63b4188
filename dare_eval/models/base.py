"""``DiffusionModel``: the OpenCompass wrapper that every native family shares; a family file states its differences.

Decoding settings are one ``decoding=dict(...)`` that becomes a ``DecodeSpec``; whatever is wrong with it is refused
before a weight is read. ``decoding=dict(preset="llada-8b-instruct")`` takes the settings of each benchmark from the
preset table. ``gen_length`` decides the length of the canvas, so OpenCompass' ``max_out_len`` is not used.
Likelihood tasks need no decode settings; ``likelihood=dict(...)`` says how they are estimated (``models.likelihood``).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from opencompass.models.base import BaseModel
from opencompass.models.base_api import APITemplateParser

from dare_eval.errors import UsageError, unknown
from dare_eval.inferencers.likelihood import LikelihoodTask
from dare_eval.inferencers.rows import Row
from dare_eval.models.likelihood import LikelihoodModel
from dare_eval.models.settings import check_settings, context_limit, place_of
from dare_eval.models.texts import HUMAN_BOT_ROUND, GenText, cut_at_stops, row_seeds
from dare_eval.models.tokens import Codec, Encoded
from dare_eval.models.x0 import x0_changes
from dare_eval.records.provenance import weight_hash
from dare_eval.runtime.model_facts import ModelFacts
from dare_eval.spec import DecodeSpec

SWITCHES = ("record_x0",)
"""Further settings of every native model: ``record_x0`` keeps the model's guess at every forward (``models.x0``)."""
STATS = ("tokens", "nfe", "nfe_by_block", "generated_tokens", "wall_s", "step_map", "edits", "stop")


class DiffusionModel(LikelihoodModel, BaseModel):
    """A diffusion language model decoded and scored by ``dare_eval.decoding``.

    ``path`` is a packaged name, a folder or a hub id (``DARE_MODEL_<NAME>`` overrides it); ``decoding`` the settings
    of a ``DecodeSpec``, ``likelihood`` those of a ``LikelihoodTask``; ``max_seq_len`` a limit below the checkpoint's
    own; ``long_prompts`` is ``refuse`` or ``cut`` (drop tokens from the left); ``device`` ``auto`` takes CUDA when
    there is one, ``spread`` lays the layers over all visible GPUs. Raises ``UsageError`` for wrong settings and
    ``DataError`` for checkpoints that cannot be read.
    """

    family: ClassVar[str] = ""
    families: ClassVar[tuple[str, ...]] = ()
    """Further families that the wrapper takes when the checkpoint says so (mixture-of-experts variants)."""
    chat: ClassVar[bool] = True
    runs_on_cpu: ClassVar[bool] = True
    """One GPU asked for is a wish: without any, the model runs on the CPU."""

    def __init__(
        self,
        path: str,
        decoding: Mapping[str, Any] | None = None,
        likelihood: Mapping[str, Any] | None = None,
        max_seq_len: int | None = None,
        meta_template: Mapping[str, Any] | None = None,
        device: str = "auto",
        attn_backend: str = "auto",
        long_prompts: str = "refuse",
        **others: Any,
    ) -> None:
        record_x0 = others.pop("record_x0", False)
        self.check_names(others)
        place, config, spec = self.resolve(path, decoding)
        given = {"device": device, "attn_backend": attn_backend, "meta_template": meta_template, "record_x0": record_x0}
        check_settings({"decoding": decoding, **given}, config)
        context_limit(max_seq_len, config, spec)  # is there room beside the response?
        limit = context_limit(max_seq_len, config, None)
        super().__init__(path, limit, meta_template=meta_template)
        if self.chat:
            self.template_parser = APITemplateParser(meta_template or HUMAN_BOT_ROUND)
        self.codec = Codec(place, config, chat=self.chat, limit=limit, long_prompts=long_prompts)
        self.config, self._spec, self.record_x0 = config, spec, record_x0
        self.use_likelihood({key: value for key, value in (likelihood or {}).items() if key != "preset"})
        self.network = self.open_network(place, str((decoding or {}).get("dtype", "float32")), device, attn_backend)
        self._warm = False

    def open_network(self, place: Path, dtype: str, device: str, attn_backend: str) -> Any:
        """Return what decodes: here the network itself, in this process."""
        return _load(place, dtype, device, attn_backend)

    @property
    def spec(self) -> DecodeSpec:
        """The decode spec in force; raises ``UsageError`` while a preset waits for its data set."""
        if self._spec is None:
            raise UsageError(
                f"{type(self).__name__} has no decode settings",
                seen="no decoding=dict(...), or one with a preset, which needs a data set to choose the settings",
                remedy="run it through configs that use dare_eval.runtime, or give the settings themselves",
            )
        return self._spec

    def use_decoding(self, settings: Mapping[str, Any]) -> None:
        """Decode with other settings from now on (the infer task sets those of each data set)."""
        self._spec = DecodeSpec.build(self.config.family, **settings)

    @classmethod
    def check_names(cls, others: Mapping[str, Any]) -> None:
        """Refuse settings that the wrapper does not have, naming the nearest one."""
        known = [name for name in inspect.signature(cls.__init__).parameters if name not in ("self", "others")]
        for name in (name for name in others if name not in SWITCHES):
            raise unknown(
                f"setting of {cls.__name__}",
                name,
                [*known, *SWITCHES],
                remedy="decode settings go into decoding=dict(...)",
            )

    @classmethod
    def resolve(cls, path: str, decoding: Mapping[str, Any] | None) -> tuple[Path, Any, DecodeSpec | None]:
        """Return the checkpoint folder, its ``NetworkConfig`` and the checked spec; reads no weights.

        The spec is None when ``decoding`` names a preset, and when it gives nothing but a ``dtype``.
        """
        from dare_eval.decoding.canvas import is_block_causal
        from dare_eval.decoding.stopping import end_tokens
        from dare_eval.networks import read_config, resolve_model_path

        if not isinstance(decoding or {}, Mapping):
            raise UsageError("decoding is no dict of settings", seen=decoding, allowed="dict(gen_length=..., ...)")
        settings = dict(decoding or {})
        whole = "preset" not in settings and not _is_empty(settings)
        if whole and cls.family:
            DecodeSpec.build(cls.family, **settings)  # the settings before the files: the cheaper check first
        place = resolve_model_path(path)
        config = read_config(place)
        allowed = tuple(name for name in (cls.family, *cls.families) if name)
        if config.family not in allowed:
            raise UsageError(
                f"{cls.__name__} cannot load a checkpoint of family '{config.family}'",
                seen=place,
                allowed=", ".join(allowed),
                remedy="use the wrapper of that family",
            )
        spec = DecodeSpec.build(config.family, **settings) if whole else None
        if spec is not None:
            is_block_causal(config, spec)  # a cache that this network's attention cannot keep is refused here
            end_tokens(spec, config)
        return place, config, spec

    @classmethod
    def facts(cls, settings: Mapping[str, Any]) -> ModelFacts:
        """Check ``settings`` (a model config) and describe the model without reading weights into memory.

        With ``likelihood`` settings the description is that of a likelihood task, else decode settings are needed.
        """
        known = inspect.signature(cls.__init__).parameters
        cls.check_names({name: value for name, value in settings.items() if name not in known})
        if not settings.get("path"):
            raise UsageError(f"{cls.__name__} needs a path", allowed="a packaged name, a folder or a hub id")
        likelihood, decoding = settings.get("likelihood"), settings.get("decoding") or {}
        if likelihood is None and _is_empty(decoding):
            raise UsageError(
                f"{cls.__name__} needs decode settings",
                remedy="add decoding=dict(gen_length=..., block_length=..., steps=...) to the model config",
            )
        place, config, spec = cls.resolve(str(settings.get("path", "")), decoding)
        check_settings(settings, config)
        limit = context_limit(settings.get("max_seq_len"), config, None)
        context_limit(limit, config, spec)  # is there room beside the response?
        cut = settings.get("long_prompts", "refuse")
        codec = Codec(place, config, chat=cls.chat, limit=limit, long_prompts=cut)
        codec.check_template(needed=likelihood is None)
        described = spec.to_dict() if spec else {}
        if likelihood is not None:
            described = LikelihoodTask.build(likelihood).describe(config, str(decoding.get("dtype", "float32")))
        return ModelFacts(str(settings["path"]), config.family, weight_hash(place), described, str(place))

    def generate(
        self,
        inputs: Sequence[Any],
        max_out_len: int | None = None,
        rows: Sequence[Row] | None = None,
        stopping_criteria: Sequence[str] = (),
    ) -> list[GenText]:
        """Decode one batch; ``rows`` names the items, which fixes each row's seed whatever the batch."""
        from dare_eval.decoding import RecordOptions, decode

        if not inputs:
            return []
        prompts, seeds = self.encode_batch(inputs, rows)
        self._warm_up(prompts[0].ids)
        record = RecordOptions() if self.record_x0 else None
        results = decode(self.network, [one.ids for one in prompts], self.spec, row_seeds=seeds, record=record)
        return [self._answer(result, one, stopping_criteria) for result, one in zip(results, prompts, strict=True)]

    def encode_batch(self, inputs: Sequence[Any], rows: Sequence[Row] | None) -> tuple[list[Encoded], list[int]]:
        """Return the ids and the seed of each row."""
        known: Sequence[Row | None] = rows if rows is not None else [None] * len(inputs)
        prompts = [self.encode(prompt, row) for prompt, row in zip(inputs, known, strict=True)]
        return prompts, row_seeds(self.spec.seed, rows, [one.text for one in prompts])

    def encode(self, prompt: Any, row: Row | None = None) -> Encoded:
        """Return the ids of one OpenCompass prompt; a row may say what the reply starts with."""
        prefix = str(row.fields.get("reply_prefix") or "") if row is not None else ""
        return self.codec.encode(prompt, self.spec.gen_length, prefix, block_length=self.spec.block_length)

    def check_prompt(self, prompt: Any, row: Row | None = None) -> None:
        """Raise ``DataError`` when ``prompt`` cannot be rendered, or does not fit the context with its response."""
        self.encode(prompt, row)

    def get_token_len(self, prompt: str) -> int:
        """Return the number of tokens of ``prompt`` without special tokens."""
        return self.codec.length(prompt)

    def _warm_up(self, ids: list[int]) -> None:
        """Run one forward before the first measured batch, so that speed does not include start-up of kernels."""
        if not self._warm:
            import torch

            with torch.no_grad():
                self.network(torch.tensor([ids or [self.config.mask_id]], device=self.network.device))
            self._warm = True

    def _answer(self, result: Any, prompt: Encoded, stops: Sequence[str]) -> GenText:
        from dare_eval.decoding.stopping import end_tokens

        text, stopped = cut_at_stops(self.codec.decode(result.tokens), stops)
        stats = {name: getattr(result, name) for name in STATS}
        if result.trace is not None:
            stats["x0"] = x0_changes(result.trace, self.config.mask_id, end_tokens(self.spec, self.config))
        if stopped:
            stats["stop"] = "stop_text"
        return GenText(text, {**stats, "prompt": prompt.text, "cut_tokens": prompt.cut_tokens})


def _is_empty(decoding: Mapping[str, Any]) -> bool:
    """Whether decode settings say nothing about decoding (a dtype concerns the network)."""
    return not set(decoding) - {"dtype"}


def _load(place: Path, dtype: str, device: str, attn_backend: str) -> Any:
    from dare_eval.networks import load_network

    if device == "spread":
        return load_network(str(place), dtype=dtype, device_map="auto", attn_backend=attn_backend).eval()
    return load_network(str(place), dtype=dtype, device=place_of(device), attn_backend=attn_backend).eval()
