"""``DiffusionModel``: the OpenCompass wrapper that every native family shares; a family file states its differences.

Decoding settings are one ``decoding=dict(...)`` that becomes a ``DecodeSpec``; whatever is wrong with it is refused
before a weight is read. The chat template is the tokenizer's own. ``gen_length`` decides the length of the canvas,
so OpenCompass' ``max_out_len`` is not used. Leaves out decoding itself (``dare_eval.decoding``) and likelihoods.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from opencompass.models.base import BaseModel
from opencompass.models.base_api import APITemplateParser

from dare_eval.errors import DataError, UsageError, unknown
from dare_eval.inferencers.rows import Row
from dare_eval.models.texts import HUMAN_BOT_ROUND, GenText, cut_at_stops, render_chat, row_seed
from dare_eval.records.provenance import weight_hash
from dare_eval.runtime.model_facts import ModelFacts
from dare_eval.spec import DecodeSpec

STATS = ("tokens", "nfe", "nfe_by_block", "generated_tokens", "wall_s", "step_map", "edits", "stop")


class DiffusionModel(BaseModel):
    """A diffusion language model decoded by ``dare_eval.decoding``.

    ``path`` is a packaged name, a folder or a hub id (``DARE_MODEL_<NAME>`` overrides it); ``decoding`` the settings
    of a ``DecodeSpec``; ``device`` ``auto`` takes CUDA when there is one. Raises ``UsageError`` for wrong settings
    and ``DataError`` for checkpoints that cannot be read.
    """

    family: ClassVar[str] = ""
    families: ClassVar[tuple[str, ...]] = ()
    """Further families that the wrapper takes when the checkpoint says so (mixture-of-experts variants)."""
    chat: ClassVar[bool] = True

    def __init__(
        self,
        path: str,
        decoding: Mapping[str, Any] | None = None,
        max_seq_len: int = 4096,
        meta_template: Mapping[str, Any] | None = None,
        device: str = "auto",
        attn_backend: str = "auto",
        tokenizer_only: bool = False,
        **others: Any,
    ) -> None:
        self.check_names(others)
        super().__init__(path, max_seq_len, tokenizer_only, meta_template)
        place, config, self.spec = self.resolve(path, decoding)
        if self.chat:
            self.template_parser = APITemplateParser(meta_template or HUMAN_BOT_ROUND)
        self.tokenizer = load_tokenizer(place, config)
        self.network: Any = None
        if not tokenizer_only:
            self.network = _load(place, self.spec, device, attn_backend)

    @classmethod
    def check_names(cls, others: Mapping[str, Any]) -> None:
        """Refuse settings that no wrapper has, naming the nearest one."""
        for name in others:
            known = [name for name in inspect.signature(cls.__init__).parameters if name not in ("self", "others")]
            raise unknown(
                f"setting of {cls.__name__}", name, known, remedy="decoding settings go into decoding=dict(...)"
            )

    @classmethod
    def resolve(cls, path: str, decoding: Mapping[str, Any] | None) -> tuple[Path, Any, DecodeSpec]:
        """Return the checkpoint folder, its ``NetworkConfig`` and the checked spec; reads no weights."""
        from dare_eval.networks import read_config, resolve_model_path

        if decoding is None:
            raise UsageError(
                f"{cls.__name__} needs decoding settings",
                remedy="add decoding=dict(gen_length=..., block_length=..., steps=...) to the model config",
            )
        DecodeSpec.build(cls.family, **decoding)  # the settings before the files: the cheaper check first
        place = resolve_model_path(path)
        config = read_config(place)
        allowed = (cls.family, *cls.families)
        if config.family not in allowed:
            raise UsageError(
                f"{cls.__name__} cannot load a checkpoint of family '{config.family}'",
                seen=place,
                allowed=", ".join(allowed),
                remedy="use the wrapper of that family",
            )
        return place, config, DecodeSpec.build(config.family, **decoding)

    @classmethod
    def facts(cls, settings: Mapping[str, Any]) -> ModelFacts:
        """Check ``settings`` (a model config) and describe the model without reading weights into memory."""
        known = inspect.signature(cls.__init__).parameters
        cls.check_names({name: value for name, value in settings.items() if name not in known})
        place, config, spec = cls.resolve(str(settings.get("path", "")), settings.get("decoding"))
        return ModelFacts(str(settings["path"]), config.family, weight_hash(place), spec.to_dict())

    def generate(
        self,
        inputs: Sequence[Any],
        max_out_len: int | None = None,
        rows: Sequence[Row] | None = None,
        stopping_criteria: Sequence[str] = (),
    ) -> list[GenText]:
        """Decode one batch; ``rows`` names the items, which fixes each row's seed whatever the batch."""
        from dare_eval.decoding import decode

        known: Sequence[Row | None] = rows if rows is not None else [None] * len(inputs)
        prompts = [self.render(prompt, row) for prompt, row in zip(inputs, known, strict=True)]
        ids = [self.encode_prompt(prompt) for prompt in prompts]
        names = [row.item_id if row is not None else prompt for prompt, row in zip(prompts, known, strict=True)]
        seeds = [row_seed(self.spec.seed, name) for name in names]
        results = decode(self.network, ids, self.spec, row_seeds=seeds)
        return [
            self._answer(result, prompt, stopping_criteria) for result, prompt in zip(results, prompts, strict=True)
        ]

    def render(self, prompt: Any, row: Row | None = None) -> str:
        """Return the text that is tokenized for one OpenCompass prompt; a row may say what the reply starts with."""
        prefix = str(row.fields.get("reply_prefix") or "") if row is not None else ""
        return render_chat(self.tokenizer, prompt, prefix) if self.chat else str(prompt) + prefix

    def encode_prompt(self, text: str) -> list[int]:
        """Return the ids of a rendered prompt; raises ``DataError`` when prompt and response do not fit."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=not self.chat)["input_ids"]
        if len(ids) + self.spec.gen_length > self.max_seq_len:
            raise DataError(
                "prompt and response are longer than the context",
                seen=f"{len(ids)} prompt tokens + gen_length {self.spec.gen_length}",
                allowed=f"max_seq_len = {self.max_seq_len}",
                remedy="raise max_seq_len in the model config if the checkpoint allows it, or use fewer examples",
            )
        return ids

    def get_token_len(self, prompt: str) -> int:
        """Return the number of tokens of ``prompt`` without special tokens."""
        return len(self.tokenizer(prompt, add_special_tokens=False)["input_ids"])

    def _answer(self, result: Any, prompt: str, stops: Sequence[str]) -> GenText:
        text = self.tokenizer.decode(list(result.tokens), skip_special_tokens=True)
        text, stopped = cut_at_stops(text, stops)
        stats = {name: getattr(result, name) for name in STATS}
        if stopped:
            stats["stop"] = "stop_text"
        return GenText(text, {**stats, "prompt": prompt})


def load_tokenizer(place: Path, config: Any) -> Any:
    """Return the tokenizer in ``place`` (no remote code); refuses one whose mask token disagrees with the config."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(place))
    except (OSError, ValueError) as error:
        raise DataError(
            "the tokenizer cannot be read", seen=f"{place}: {error}", remedy="copy its files again"
        ) from error
    mask_id = getattr(tokenizer, "mask_token_id", None)
    if mask_id is not None and mask_id != config.mask_id:
        raise DataError(
            "tokenizer and config name different mask tokens",
            seen=f"tokenizer {mask_id}, config {config.mask_id}",
            remedy="make mask_token_id in config.json agree with the tokenizer",
        )
    return tokenizer


def _load(place: Path, spec: DecodeSpec, device: str, attn_backend: str) -> Any:
    import torch

    from dare_eval.networks import load_network

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    network = load_network(str(place), dtype=spec.dtype, device=device, attn_backend=attn_backend)
    return network.eval()
