"""What a config will cost before it runs: forwards, operations, hours and memory of every model on every data set.

Reads configs, tokenizers and data, never weights. A checkpoint that is not on this machine is planned from the
published sizes (``presets/sizes.yaml``), its prompts from their characters. What cannot work is said in its row, so
that one command shows all of it. Leaves out the speed of engines and models that replay answers.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from dare_eval.errors import DareError, DataError, UsageError
from dare_eval.report.devices import Device
from dare_eval.report.forwards import Work, work
from dare_eval.report.plan_cost import Range, Size, flops, hours, memory_gib
from dare_eval.spec import DecodeSpec

CHARACTERS_PER_TOKEN = 3.5
"""Where a tokenizer is not at hand."""
NO_DATA = "data: "
"""How a reason begins that is about missing data."""
_OPTION_TOKENS = 8


@dataclass(slots=True, kw_only=True)
class PlanRow:
    """One model on one data set; None where it cannot be known."""

    model: str
    dataset: str
    items: int | None = None
    prompt_tokens: float | None = None
    """Mean over the prompts looked at."""
    longest_prompt: int | None = None
    gen_length: int | None = None
    nfe: Range | None = None
    """Forwards per item."""
    pflop: Range | None = None
    """10^15 operations for all items."""
    hours: Range | None = None
    memory_gib: Range | None = None
    impossible: list[str] = field(default_factory=list)
    """Why the pair cannot run as it is."""
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Subject:
    """A model as far as it is known without weights; ``codec`` is None where its tokenizer is not here."""

    config: Any
    spec: DecodeSpec | None
    """None for a likelihood task."""
    settings: Any
    """The model config with what holds on the data set."""
    codec: Any

    @property
    def batch(self) -> int:
        """Rows per batch."""
        return int(self.settings.get("batch_size") or 1)

    @property
    def dtype(self) -> str:
        """Compute type."""
        return str((self.settings.get("decoding") or {}).get("dtype", "float32"))

    @property
    def limit(self) -> int:
        """Longest prompt and response; raises ``UsageError`` when the response alone takes all of it."""
        from dare_eval.models.settings import context_limit

        return context_limit(self.settings.get("max_seq_len"), self.config, self.spec)


def plan_row(model_cfg: Any, dataset_cfg: Any, device: Device) -> PlanRow:
    """Return the plan of one pair; what cannot be read or cannot work is said in the row."""
    from opencompass.utils import dataset_abbr_from_cfg, model_abbr_from_cfg

    from dare_eval.runtime.built import rows_of

    row = PlanRow(model=model_abbr_from_cfg(model_cfg), dataset=dataset_abbr_from_cfg(dataset_cfg))
    try:
        row.items = len(rows_of(dataset_cfg))
    except DareError as error:
        row.impossible.append(f"{NO_DATA}{error.what}: {error.seen}")
    try:
        subject = find_subject(model_cfg, dataset_cfg, row)
        if subject is None:
            return row
        if row.items is not None:
            _look_at_prompts(row, subject, dataset_cfg)
        _estimate(row, subject, dataset_cfg, device)
    except DareError as error:
        remedy = f" (works: {error.remedy})" if error.remedy and isinstance(error, UsageError) else ""
        row.impossible.append(f"{error.what}{remedy}")
    return row


def find_subject(model_cfg: Any, dataset_cfg: Any, row: PlanRow) -> Subject | None:
    """Return what is known of the model on a data set; None (with a note) for one that decodes nothing here."""
    from opencompass.registry import MODELS

    from dare_eval.models.tokens import Codec
    from dare_eval.presets.sizes import published_config
    from dare_eval.runtime.binding import bound_model
    from dare_eval.runtime.dotted import resolve

    cls = resolve("model", model_cfg["type"], MODELS)
    if not hasattr(cls, "resolve"):
        row.notes.append("answers are recorded or come from an engine: no forwards to plan")
        return None
    bound = bound_model(model_cfg, dataset_cfg)
    decoding = dict(bound.get("decoding") or {})
    try:
        place, config, spec = cls.resolve(str(bound["path"]), decoding)
    except DataError:
        config = published_config(str(bound["path"]))
        spec = DecodeSpec.build(config.family, **decoding) if "gen_length" in decoding else None
        row.notes.append("checkpoint not here: published sizes, prompt tokens from characters")
        _check_engine(cls, spec, row)
        return Subject(config, spec, bound, None)
    _check_engine(cls, spec, row)
    return Subject(config, spec, bound, Codec(place, config, chat=cls.chat, limit=config.context_length))


def _check_engine(cls: Any, spec: DecodeSpec | None, row: PlanRow) -> None:
    """Refuse what an engine cannot honour; its own speed is not known here."""
    if spec is not None and hasattr(cls, "engine_spec"):
        cls.engine_spec(spec)
        row.notes.append("decoded by an engine: forwards as in-process, its speed is not known here")


def size_of(config: Any) -> Size:
    """Return the parameter counts of a network, built on the meta device: no weight is read or drawn."""
    import torch

    from dare_eval.networks import DiffusionNetwork

    with torch.device("meta"):
        network = DiffusionNetwork(config)
    inside = sum(value.numel() for value in network.layers.state_dict().values())
    idle, widest = 0, config.ffn
    if (moe := config.moe) is not None:
        idle = sum(moe.sparse_layers) * (moe.experts - moe.top_k) * 3 * config.width * moe.expert_ffn
        widest = max(moe.top_k * moe.expert_ffn, config.ffn)
    return Size(
        total=sum(value.numel() for value in network.state_dict().values()),
        active=inside - idle,
        layers=config.layers,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        width=config.width,
        widest=widest,
        vocab=config.vocab_size,
    )


def _look_at_prompts(row: PlanRow, subject: Subject, dataset_cfg: Any) -> None:
    """Fill in the lengths of prompts, and say when some do not fit the context."""
    from dare_eval.runtime.prompt_sample import sampled_prompts

    lengths = [_tokens(subject, prompt, item) for item, prompt in sampled_prompts(dataset_cfg)]
    row.prompt_tokens, row.longest_prompt = statistics.fmean(lengths), max(lengths)
    room = subject.limit - (subject.spec.gen_length if subject.spec else 0)
    long = sum(length > room for length in lengths)
    if not long:
        return
    seen = f"{long} of {len(lengths)} prompts looked at do not fit: longest {max(lengths)}, room {room} tokens"
    if subject.settings.get("long_prompts") == "cut" and room > 0:
        row.notes.append(f"{seen}; they are cut")
    elif subject.codec is None:
        row.notes.append(f"{seen} (estimated)")
    else:
        row.impossible.append(seen)


def _tokens(subject: Subject, prompt: Any, item: Any) -> int:
    from dare_eval.models.texts import messages, render_chat

    chat = subject.codec.chat if subject.codec is not None else True
    turns = prompt if isinstance(prompt, str) else _turns(prompt, chat=chat)
    if subject.codec is None:
        characters = sum(len(turn["content"]) for turn in messages(turns))
        return round(characters / CHARACTERS_PER_TOKEN)
    prefix = str(item.fields.get("reply_prefix") or "")
    text = render_chat(subject.codec.tokenizer, turns, prefix) if chat else str(turns) + prefix
    return len(subject.codec.ids_of(text))


def _turns(prompt: Any, *, chat: bool) -> Any:
    """Return a prompt list after the meta template of chat models, or as the one text base models get."""
    from opencompass.models.base import LMTemplateParser
    from opencompass.models.base_api import APITemplateParser

    from dare_eval.models.texts import HUMAN_BOT_ROUND

    if chat:
        return APITemplateParser(HUMAN_BOT_ROUND).parse_template(prompt, mode="gen")
    return LMTemplateParser().parse_template(prompt, mode="gen")


def _estimate(row: PlanRow, subject: Subject, dataset_cfg: Any, device: Device) -> None:
    """Fill in forwards, operations, hours and memory."""
    size, spec, dtype = size_of(subject.config), subject.spec, subject.dtype
    prompt = row.prompt_tokens or 0.0
    if spec is not None:
        least, most = work(spec, prompt, shift=subject.config.shift, causal=subject.config.block_length is not None)
        guided, block, row.gen_length = bool(spec.cfg_scale), spec.block_length, spec.gen_length
    else:
        least = most = _likelihood_work(subject, dataset_cfg, prompt)
        guided, block = bool((subject.settings.get("likelihood") or {}).get("cfg_scale")), _OPTION_TOKENS
    row.nfe = Range(least.nfe, most.nfe)
    width = (row.longest_prompt or prompt) + (spec.gen_length if spec else _OPTION_TOKENS)
    cached = spec is not None and spec.cache != "none"
    row.memory_gib = memory_gib(size, subject.batch, min(width, subject.limit), block, cached, dtype)
    if row.memory_gib.low > device.memory_gib:
        row.impossible.append(f"does not fit {device.name}: at least {row.memory_gib.low:.1f} GiB")
    elif row.memory_gib.high > device.memory_gib:
        row.notes.append(f"may not fit {device.name}: lower batch_size if it runs out of memory")
    if row.items is None:
        return
    ends = (flops(size, least, guided=guided), flops(size, most, guided=guided))
    row.pflop = Range(*(row.items * end / 1e15 for end in ends))
    row.hours = hours(size, row.items, subject.batch, least, most, device, dtype, guided)


def _likelihood_work(subject: Subject, dataset_cfg: Any, prompt: float) -> Work:
    """Return the work of scoring an item's options: each noisy copy of each option is one row of one forward."""
    template = dataset_cfg["infer_cfg"]["prompt_template"]["template"]
    options = len(template) if isinstance(template, dict) and "round" not in template else 4
    copies = int((subject.settings.get("likelihood") or {}).get("mc_num") or 128)
    width, rows = prompt + _OPTION_TOKENS, options * copies
    return Work(rows, rows * width, rows * width * width, rows * _OPTION_TOKENS)
