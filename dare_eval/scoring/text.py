"""Clean-up that every text scorer shares: left-over special tokens, line ends, answer tags, fences, run-on questions.

Decoding removes special tokens by id; recorded outputs and outside servers still carry them, so they are removed
here too, and left-over mask tokens are counted. Nothing here looks inside an answer.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_CHARS = 100_000
"""A response longer than this keeps its last ``MAX_CHARS`` characters: scorers are linear, but not in gigabytes."""

_MASK = re.compile(r"<\|?(?:mdm_)?mask\|?>|\[MASK\]", re.IGNORECASE)
_SPECIAL = re.compile(r"<\|[^|<>\s]{1,40}\|>|</?s>|<(?:eos|bos|pad|unk)>|\[(?:PAD|EOS|BOS|CLS|SEP)\]", re.IGNORECASE)
_NEXT_QUESTION = re.compile(
    r"\n[ \t]*(?:\*\*|#+ ?)?(?:question|problem|q|user|human|instruction|exercise) ?\d{0,4} ?(?:\*\*)?[:.](?=\s|\*)",
    re.IGNORECASE,
)
_OPEN_TAG = re.compile(r"<answer>", re.IGNORECASE)
_CLOSED_TAG = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.IGNORECASE | re.DOTALL)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)```|```([^`\n]*)```", re.DOTALL)


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match of ``pattern``."""
    found = None
    for found in pattern.finditer(text):  # noqa: B007 - the loop only runs to its end
        pass
    return found


class Cleaned(NamedTuple):
    """A response without special tokens, and how many masks were left in it."""

    text: str
    masks_left: int


class Tagged(NamedTuple):
    """The content of an ``<answer>`` tag; ``closed`` is False when the text ended before the closing tag."""

    text: str
    closed: bool

    @property
    def ended(self) -> str:
        """The content with what ends it, for readers to whom an open end is a cut."""
        return f"{self.text}</answer>" if self.closed else self.text


def clean(response: str) -> Cleaned:
    """Remove special tokens and unify line ends; a left-over mask becomes a space, because what it hides is unknown."""
    text = response[-MAX_CHARS:].replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    if "<" not in text and "[" not in text:
        return Cleaned(text, 0)
    text, masks = _MASK.subn(" ", text)
    return Cleaned(_SPECIAL.sub("", text), masks)


def cut_next_question(text: str) -> str:
    """Cut where the model runs on into a new few-shot question; a question restated at the start stays."""
    for found in _NEXT_QUESTION.finditer(text):
        if re.search(r"\w", text[: found.start()]):
            return text[: found.start()]
    return text


def answer_tag(text: str, *, accept_open: bool = False) -> Tagged | None:
    """Return the last closed ``<answer>`` tag; an unclosed last one only when ``accept_open``."""
    if "<" not in text:
        return None
    closed = last_match(_CLOSED_TAG, text)
    if closed is not None:
        return Tagged(closed[1], True)
    opened = last_match(_OPEN_TAG, text)
    if opened is not None and accept_open:
        return Tagged(re.sub(r"</?[A-Za-z]*>?\s*$", "", text[opened.end() :]), False)
    return None


def has_open_tag(text: str) -> bool:
    """Tell whether an ``<answer>`` tag was opened anywhere."""
    return _OPEN_TAG.search(text) is not None


def last_fence(text: str) -> str | None:
    """Return the content of the last closed code fence."""
    if "```" not in text:
        return None
    last = last_match(_FENCE, text)
    return None if last is None else (last[1] if last[1] is not None else last[2])
