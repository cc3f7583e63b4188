"""A model answering in a terminal: checkpoint, tokenizer, decode settings; shared by ``sample`` and ``chat``.

Uses the network and the decoding loop directly, so no OpenCompass is imported and any family works from its folder
or hub id. Leaves out how the answer is shown (``denoising_view``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.errors import UsageError

if TYPE_CHECKING:
    from dare_eval.commands.denoising_view import View
    from dare_eval.decoding import DecodeResult
    from dare_eval.models.tokens import Codec
    from dare_eval.networks import DiffusionNetwork
    from dare_eval.spec import DecodeSpec

DEFAULT_LENGTH = 128
DEFAULT_BLOCK = 32


@dataclass(slots=True)
class Terminal:
    """A loaded model and the decode settings in force."""

    network: DiffusionNetwork
    codec: Codec
    settings: dict[str, Any]

    @property
    def spec(self) -> DecodeSpec:
        """Return the checked decode spec; raises ``UsageError`` for settings that cannot work on this checkpoint."""
        from dare_eval.decoding.canvas import is_block_causal
        from dare_eval.decoding.stopping import end_tokens
        from dare_eval.models.settings import context_limit
        from dare_eval.spec import DecodeSpec

        config = self.codec.config
        spec = DecodeSpec.build(config.family, **self.settings)
        is_block_causal(config, spec)
        end_tokens(spec, config)
        context_limit(None, config, spec)
        return spec

    def answer(self, turns: Sequence[Mapping[str, str]] | str, view: View) -> DecodeResult:
        """Decode one answer to ``turns`` (or to a bare text) and show it in ``view`` as it forms.

        Raises ``DataError`` when prompt and response do not fit the context.
        """
        from dare_eval.decoding import RecordOptions, decode

        spec = self.spec
        ids = self.codec.encode(turns, spec.gen_length, block_length=spec.block_length).ids
        with view:
            record = RecordOptions(steps=(), watch=view.watch)
            [result] = decode(self.network, [ids], spec, row_seeds=[spec.seed], record=record)
        result.text = self.codec.decode(result.tokens)
        return result


def open_terminal(
    name: str,
    *,
    settings: Sequence[str],
    preset: str | None,
    raw: bool,
    device: str,
    dtype: str,
) -> Terminal:
    """Return the model ``name`` (shipped, folder, hub id or name of the preset table) ready to answer.

    ``settings`` are ``key=value`` texts; ``preset`` is a benchmark whose settings of the preset table apply. Settings
    are checked before weights are read. Raises the errors of ``dare_eval.networks`` and ``dare_eval.spec``.
    """
    from dare_eval.models.settings import check_device, context_limit, place_of
    from dare_eval.models.tokens import Codec
    from dare_eval.networks import load_network, read_config, resolve_model_path
    from dare_eval.presets import entry, models

    check_device(device)
    place = resolve_model_path(entry(name)["path"] if name in models() else name)
    config = read_config(place)
    _quiet()
    codec = Codec(place, config, chat=not raw, limit=context_limit(None, config, None))
    if not raw and not codec.tokenizer.chat_template:
        raise UsageError("this checkpoint has no chat template", seen=name, remedy="--raw continues a bare text")
    codec.check_template()
    chosen = {**default_settings(name, config, preset), **parse_settings(settings)}
    found = Terminal(None, codec, {"dtype": dtype, **chosen})  # type: ignore[arg-type]
    _ = found.spec
    if device == "spread":
        found.network = load_network(str(place), dtype=found.spec.dtype, device_map="auto")
    else:
        found.network = load_network(str(place), dtype=found.spec.dtype, device=place_of(device))
    return found


def default_settings(name: str, config: Any, preset: str | None) -> dict[str, Any]:
    """Return decode settings for a model: of a benchmark's preset, of the shipped checkpoint, or general ones.

    Raises ``UsageError`` for a preset of a model the table does not know.
    """
    import yaml

    from dare_eval.networks.paths import ASSETS
    from dare_eval.presets import entry, find, models

    last = name.rstrip("/").rpartition("/")[2]
    if preset is not None:
        known = next((model for model in models() if name in (model, entry(model)["path"])), None)
        return find(known or last, preset).decoding
    shipped = yaml.safe_load((ASSETS / "decoding.yaml").read_text(encoding="utf-8"))
    if name in shipped and not Path(name).exists():
        return dict(shipped[name])
    block = config.block_length or DEFAULT_BLOCK
    length = min(DEFAULT_LENGTH, config.context_length // 2)
    return {"gen_length": max(block, length // block * block), "block_length": block}


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Return ``key=value`` texts, read as YAML, as decode settings: ``none`` is a text, ``null`` unsets what may be."""
    from dare_eval.values import read_value

    found = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign:
            raise UsageError("a setting is not key=value", seen=text, allowed="key=value", remedy="--set steps=32")
        found[key.strip()] = read_value(key.strip(), value)
    return found


def cost_line(result: DecodeResult) -> str:
    """Return what an answer cost, on one line."""
    return (
        f"NFE {result.nfe}, {result.tokens_per_forward:.2f} tokens/forward, {result.tokens_per_second:.1f} tokens/s, "
        f"{result.generated_tokens} tokens in {result.wall_s:.2f} s, stop: {result.stop}"
    )


def _quiet() -> None:
    """Keep notes of the tokenizer library out of the conversation."""
    from transformers.utils import logging

    logging.set_verbosity_error()
