"""``GenText``: a generated text that carries what it cost, and the prompt forms that models receive.

``GenText`` is a ``str``, so every upstream inferencer and postprocessor takes it; only ``DiffusionGenInferencer``
looks at ``.stats``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from dare_eval.errors import DataError
from dare_eval.inferencers.rows import Row

HUMAN_BOT_ROUND: dict[str, Any] = {
    "round": [{"role": "HUMAN", "api_role": "HUMAN"}, {"role": "BOT", "api_role": "BOT", "generate": True}],
    "reserved_roles": [{"role": "SYSTEM", "api_role": "SYSTEM"}],
}
"""Meta template that makes OpenCompass hand over a list of turns instead of one text."""

_ROLES = {"HUMAN": "user", "BOT": "assistant", "SYSTEM": "system"}


class GenText(str):
    """A response and its ``stats`` (fields of ``DecodeResult`` by name, ``prompt``, ``unrecorded``)."""

    stats: dict[str, Any]

    def __new__(cls, text: str, stats: Mapping[str, Any] | None = None) -> GenText:
        """Return ``text`` with ``stats`` attached."""
        made = super().__new__(cls, text)
        made.stats = dict(stats or {})
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (GenText, (str(self), self.stats))


def messages(prompt: Any) -> list[dict[str, str]]:
    """Return the turns of an OpenCompass prompt as chat messages; a bare text is one user turn."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    found = []
    for turn in prompt:
        role, content = turn.get("role", "HUMAN"), turn.get("prompt", turn.get("content", ""))
        if content or role != "SYSTEM":  # an empty system turn is no system turn
            found.append({"role": _ROLES.get(role, role), "content": content})
    return found


def last_question(prompt: Any) -> str:
    """Return the text of the last user turn (of the whole prompt when it is one text)."""
    asked = [turn["content"] for turn in messages(prompt) if turn["role"] == "user"]
    return asked[-1] if asked else ""


def render_chat(tokenizer: Any, prompt: Any, reply_prefix: str = "") -> str:
    """Return the prompt text after the tokenizer's chat template, ready for the assistant's turn; raises ``DataError``.

    ``reply_prefix`` is text the reply starts with; a last assistant turn of the data set's template is continued,
    not closed.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise DataError(
            "the tokenizer has no chat template",
            seen=getattr(tokenizer, "name_or_path", type(tokenizer).__name__),
            remedy="use the ...BaseModel class for base checkpoints, or add chat_template to tokenizer_config.json",
        )
    turns = messages(prompt)
    opened = bool(turns) and turns[-1]["role"] == "assistant"
    try:
        text: str = tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=not opened, continue_final_message=opened
        )
    except Exception as error:  # a template is a program: it may raise anything
        raise DataError(
            "the chat template cannot be applied",
            seen=f"{getattr(tokenizer, 'name_or_path', '')}: {type(error).__name__}: {error}",
            remedy="repair chat_template.jinja (or chat_template in tokenizer_config.json), or copy it again",
        ) from error
    return text + reply_prefix


def check_text(text: str) -> None:
    """Raise ``DataError`` for a lone surrogate, which no tokenizer takes: what is left of a byte that is no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        mark = ord(text[error.start])
        byte = f", the byte 0x{mark - 0xDC00:02x}" if 0xDC80 <= mark <= 0xDCFF else ""
        raise DataError(
            f"character {error.start} of the prompt is no Unicode text",
            seen=f"{text[error.start]!r}{byte} in {text[max(error.start - 20, 0) : error.start + 20]!r}",
            allowed="UTF-8",
            remedy="repair the text, or convert the file it comes from to UTF-8",
        ) from None


def cut_at_stops(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Return ``text`` up to the first of ``stops`` and whether one was found; empty stop texts are ignored."""
    places = [found for stop in stops if stop and (found := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def row_seed(seed: int, identity: str) -> int:
    """Return the generator seed of one row: a hash of the spec's seed and the item (its id holds the repeat)."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{identity}".encode()).digest()[:8], "big") >> 1


def row_seeds(seed: int, rows: Sequence[Row] | None, texts: Sequence[str]) -> list[int]:
    """Return the seed of each row of a batch: that of its item, of its prompt where no items are named."""
    names = texts if rows is None else [row.item_id for row in rows]
    return [row_seed(seed, name) for name in names]
