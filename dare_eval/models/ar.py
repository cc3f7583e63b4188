"""``ArModel``: a local autoregressive model of the hub as a baseline, on the transformers of this environment.

    dict(type=ArModel, abbr="qwen", path="Qwen/Qwen2.5-7B-Instruct", generation=dict(gen_length=512, dtype="bfloat16"))

Decoded by transformers' own ``generate`` with its cache; sampling adds Gumbel noise of each row's own generator to the
logits and takes the largest, which draws from the same distribution without global random state, so that answers do
not depend on the batch's other rows. One forward per token. Leaves out likelihood tasks: upstream's wrappers have them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from opencompass.models.base import BaseModel
from opencompass.models.base_api import APITemplateParser

from dare_eval.engines.counts import check_counts, check_sampling
from dare_eval.errors import DataError, UsageError, unknown
from dare_eval.inferencers.rows import Row
from dare_eval.models.engine import build_options
from dare_eval.models.settings import check_device, check_names, place_of
from dare_eval.models.texts import HUMAN_BOT_ROUND, GenText, check_text, cut_at_stops, render_chat, row_seeds
from dare_eval.networks import resolve_model_path
from dare_eval.records.provenance import weight_hash
from dare_eval.runtime.model_facts import ModelFacts

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """How an autoregressive model decodes."""

    gen_length: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        check_counts(self, "gen_length", *(["top_k"] if self.top_k is not None else []))
        check_sampling(self)
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)


class ArModel(BaseModel):
    """A causal language model in chat form; ``ArBaseModel`` continues plain text."""

    chat: ClassVar[bool] = True
    runs_on_cpu: ClassVar[bool] = True

    def __init__(
        self,
        path: str,
        generation: Mapping[str, Any],
        max_seq_len: int | None = None,
        meta_template: Mapping[str, Any] | None = None,
        device: str = "auto",
    ) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        place, config = _opened(path)
        self.generation: Generation = build_options(Generation, generation)
        known = int(getattr(config, "max_position_embeddings", 1 << 20))
        super().__init__(path, min(max_seq_len or known, known), meta_template=meta_template)
        if self.chat:
            self.template_parser = APITemplateParser(meta_template or HUMAN_BOT_ROUND)
        self.tokenizer = _tokenizer(place)
        device = place_of(device)
        dtype = getattr(torch, self.generation.dtype)
        self.network = AutoModelForCausalLM.from_pretrained(str(place), dtype=dtype).to(device).eval()

    @classmethod
    def facts(cls, settings: Mapping[str, Any]) -> ModelFacts:
        """Check ``settings`` and the checkpoint's small files."""
        check_names(cls, settings)
        if not settings.get("path") or not settings.get("generation"):
            raise UsageError(f"{cls.__name__} needs path and generation", allowed="generation=dict(gen_length=...)")
        check_device(settings.get("device", "auto"))
        generation: Generation = build_options(Generation, settings["generation"])
        place, config = _opened(str(settings["path"]))
        described = {**dataclasses.asdict(generation), "engine": "transformers", "policy": "autoregressive"}
        return ModelFacts(str(settings["path"]), str(config.model_type), weight_hash(place), described, str(place))

    def generate(
        self,
        inputs: Sequence[Any],
        max_out_len: int | None = None,
        rows: Sequence[Row] | None = None,
        stopping_criteria: Sequence[str] = (),
    ) -> list[GenText]:
        """Decode one batch; raises ``DataError`` for a prompt that is too long or no Unicode text."""
        import torch

        if not inputs:
            return []
        texts = [render_chat(self.tokenizer, one) if self.chat else str(one) for one in inputs]
        for text in texts:
            check_text(text)
        batch = self.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=not self.chat)
        self._check_room(batch["attention_mask"].sum(-1).tolist())
        started = time.perf_counter()
        with torch.no_grad():
            ids_BT = self.network.generate(
                **{name: batch[name].to(self.network.device) for name in ("input_ids", "attention_mask")},
                max_new_tokens=self.generation.gen_length,
                do_sample=False,
                logits_processor=self._noise(row_seeds(self.generation.seed, rows, texts)),
                pad_token_id=self.tokenizer.pad_token_id,
            )
        wall_s = (time.perf_counter() - started) / max(len(texts), 1)
        replies = ids_BT[:, batch["input_ids"].shape[1] :].tolist()
        return [
            self._answer(reply, text, wall_s, stopping_criteria) for reply, text in zip(replies, texts, strict=True)
        ]

    def get_token_len(self, prompt: str) -> int:
        """Return the number of tokens of ``prompt`` without special tokens."""
        return len(self.tokenizer(prompt, add_special_tokens=False)["input_ids"])

    def _check_room(self, lengths: Sequence[int]) -> None:
        longest = max(lengths, default=0)
        if longest + self.generation.gen_length > self.max_seq_len:
            raise DataError(
                "prompt and response are longer than the context",
                seen=f"{longest} prompt tokens + gen_length {self.generation.gen_length}",
                allowed=f"{self.max_seq_len} tokens",
                remedy="use fewer examples or a shorter gen_length",
            )

    def _noise(self, seeds: Sequence[int]) -> Any:
        from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

        wanted = self.generation
        if wanted.temperature == 0:
            return LogitsProcessorList()
        parts: list[Any] = [TemperatureLogitsWarper(wanted.temperature)]
        parts += [TopKLogitsWarper(wanted.top_k)] if wanted.top_k else []
        parts += [TopPLogitsWarper(wanted.top_p)] if wanted.top_p else []
        return LogitsProcessorList([*parts, GumbelNoise(seeds)])

    def _answer(self, reply: list[int], prompt: str, wall_s: float, stops: Sequence[str]) -> GenText:
        ends = self.network.generation_config.eos_token_id
        ends = {ends} if isinstance(ends, int) else set(ends or ()) | {self.tokenizer.eos_token_id}
        end = next((place for place, token in enumerate(reply) if token in ends), None)
        kept = reply if end is None else reply[:end]
        text, stopped = cut_at_stops(self.tokenizer.decode(kept, skip_special_tokens=True), stops)
        stop = "stop_text" if stopped else "length" if end is None else "eos"
        forwards = len(kept) + (end is not None)
        stats = {"tokens": kept, "nfe": forwards, "generated_tokens": len(kept), "wall_s": wall_s, "stop": stop}
        return GenText(text, {**stats, "prompt": prompt})


class ArBaseModel(ArModel):
    """A causal language model without chat turns."""

    chat = False


class GumbelNoise:
    """Logits processor: adds Gumbel noise of each row's own generator, so that the largest value is a sample."""

    def __init__(self, seeds: Sequence[int]) -> None:
        import torch

        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the noisy scores [B, V] in float32 or better."""
        import torch

        size = scores.shape[-1]
        draws = [torch.rand(size, generator=generator, dtype=torch.float64) for generator in self.generators]
        uniform_BV = torch.stack(draws).clamp_min(1e-300).to(scores.device)
        return scores.double() - (-uniform_BV.log()).log()


def _opened(path: str) -> tuple[Path, Any]:
    """Return folder and config of a checkpoint; raises ``DataError`` for one that transformers does not know."""
    from transformers import AutoConfig

    place = resolve_model_path(path)
    try:
        return place, AutoConfig.from_pretrained(str(place))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            "transformers cannot read this checkpoint",
            seen=f"{place}: {error}",
            remedy="use a model type of transformers without remote code, or serve it and use OpenAIModel",
        ) from error


def _tokenizer(place: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(place), padding_side="left")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer
