"""From prompt text to token ids and back, for every native family: chat template, BOS rule, context limit.

The tokenizer's own chat template is used; a checkpoint without one gets its family's published template.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dare_eval.errors import DataError, UsageError
from dare_eval.models.texts import check_text, render_chat
from dare_eval.spec import FAMILIES

LONG_PROMPTS = ("refuse", "cut")
PROBE = "4711"
"""A question that every template has to show; digits, which no template rewrites."""


class Encoded(NamedTuple):
    """A prompt as the network receives it."""

    ids: list[int]
    text: str
    cut_tokens: int
    """Tokens dropped from the left (``long_prompts="cut"`` only)."""


class Codec:
    """Tokenizer, template and limits of one checkpoint.

    ``limit`` is the longest prompt plus response in tokens; ``long_prompts`` says what happens to longer ones.
    """

    def __init__(self, place: Path, config: Any, *, chat: bool, limit: int, long_prompts: str = "refuse") -> None:
        if long_prompts not in LONG_PROMPTS:
            raise UsageError("unknown long_prompts", seen=long_prompts, allowed=", ".join(LONG_PROMPTS))
        self.tokenizer, self.config = load_tokenizer(place, config), config
        self.family: Any = FAMILIES.get(config.family)
        self.chat, self.limit, self.long_prompts = chat, limit, long_prompts
        if chat and not self.tokenizer.chat_template and self.family.chat_template:
            self.tokenizer.chat_template = self.family.chat_template

    def check_template(self, *, needed: bool = True) -> None:
        """Try the chat template on one question; raises ``DataError`` for none (if ``needed``) and for a broken one."""
        if not self.chat or not (needed or self.tokenizer.chat_template):
            return
        text = render_chat(self.tokenizer, PROBE)
        if PROBE not in text:
            raise DataError(
                "the chat template leaves out what is asked",
                seen=f"{text[:80]!r} for the question {PROBE!r}",
                remedy="repair chat_template.jinja (or chat_template in tokenizer_config.json)",
            )

    def encode(
        self, prompt: Any, gen_length: int, reply_prefix: str = "", *, block_length: int | None = None
    ) -> Encoded:
        """Return the ids of an OpenCompass prompt; raises ``DataError`` when prompt and response do not fit.

        ``block_length`` is that of the decode spec: a block-causal network has room for whole blocks only.
        """
        text = render_chat(self.tokenizer, prompt, reply_prefix) if self.chat else str(prompt) + reply_prefix
        ids = self.ids_of(text)
        limit = min(self.limit, self.config.canvas_length(block_length))
        room = limit - gen_length
        if len(ids) <= room:
            return Encoded(ids, text, 0)
        if self.long_prompts == "cut" and room > 0:
            return Encoded(ids[-room:], text, len(ids) - room)
        raise DataError(
            "prompt and response are longer than the context",
            seen=f"{len(ids)} prompt tokens + gen_length {gen_length}",
            allowed=f"{limit} tokens",
            remedy="use fewer examples or a shorter gen_length (max_seq_len can lower this limit, not raise it)",
        )

    def ids_of(self, text: str, *, templated: bool | None = None) -> list[int]:
        """Return the ids of a rendered prompt; BOS stands in front once where the family wants it.

        ``templated`` says whether ``text`` came through the chat template; None: it did if the wrapper is a chat one.
        Raises ``DataError`` for what is no Unicode text.
        """
        check_text(text)
        chat = self.chat if templated is None else templated
        bos = self.tokenizer.bos_token
        special = not (chat and (self.family.template_has_bos or (bos and text.startswith(bos))))
        ids: list[int] = self.tokenizer(text, add_special_tokens=special)["input_ids"]
        if not chat and self.family.prompt_bos and ids[:1] != [self.config.bos_id]:
            ids = [self.config.bos_id, *ids]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of response ids that are already trimmed; special tokens are left out."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def length(self, text: str) -> int:
        """Return the number of tokens of ``text`` without special tokens; raises ``DataError`` for no Unicode text."""
        check_text(text)
        return len(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def load_tokenizer(place: Path, config: Any) -> Any:
    """Return the tokenizer in ``place``, read without remote code.

    Raises ``DataError`` for one that cannot be read, is larger than the embedding, or names another mask token.
    """
    from transformers import AutoTokenizer
    from transformers.utils import logging

    before = logging.get_verbosity()
    try:
        logging.set_verbosity_error()  # it warns of model types it does not know; the networks here are our own
        tokenizer = AutoTokenizer.from_pretrained(str(place))
    except Exception as error:  # a damaged file raises whatever the reader met first
        raise DataError(
            "the tokenizer cannot be read",
            seen=f"{place}: {type(error).__name__}: {error}",
            remedy="copy its files again",
        ) from error
    finally:
        logging.set_verbosity(before)
    config.check_tokenizer(len(tokenizer))
    mask_id = getattr(tokenizer, "mask_token_id", None)
    if mask_id is not None and mask_id != config.mask_id:
        raise DataError(
            "tokenizer and config name different mask tokens",
            seen=f"tokenizer {mask_id}, config {config.mask_id}",
            remedy="make mask_token_id in config.json agree with the tokenizer",
        )
    if tokenizer.convert_ids_to_tokens(config.mask_id) is None:
        raise DataError(
            "the tokenizer has no mask token",
            seen=f"{place}: no token with the id {config.mask_id}, which is mask_token_id in config.json",
            remedy="copy the tokenizer's files again",
        )
    return tokenizer
