"""Turns rows into token ids through the tokenizer's chat template, exactly as evaluation renders a prompt.

The prompt is what the template makes of the turns before the answer with the assistant's header; the answer is
the rest of the rendered conversation. A template that renders a turn differently once the answer is there would
train on another prompt than evaluation sends, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from dare_eval.errors import DataError
from dare_train.config import DataSettings
from dare_train.data.rows import Row, SkippedRows

T = TypeVar("T")
CHUNK_ROWS = 2048


@dataclass(frozen=True, slots=True)
class Example:
    """One tokenised row."""

    ids: tuple[int, ...]
    """Prompt and answer."""
    prompt_length: int
    """Number of leading tokens that are never masked."""

    @property
    def answer_length(self) -> int:
        """Number of tokens that may be masked."""
        return len(self.ids) - self.prompt_length


@dataclass(frozen=True, slots=True)
class Renderer:
    """How rows become tokens: the tokenizer, the settings, and the ids that end an answer."""

    tokenizer: Any
    settings: DataSettings
    end_ids: Set[int] = frozenset()

    def prompt(self, turns: Sequence[Mapping[str, str]]) -> str:
        """Return the text that evaluation sends for ``turns``: all turns and the assistant's header."""
        return str(self.tokenizer.apply_chat_template(list(turns), tokenize=False, add_generation_prompt=True))

    def row(self, row: Row) -> Example:
        """Return one row as tokens; raises ``DataError`` as :meth:`rows` does."""
        return next(self.rows([row], SkippedRows()))

    def rows(self, rows: Iterable[Row], skipped: SkippedRows) -> Iterator[Example]:
        """Yield the usable rows as tokens; see :meth:`aligned`."""
        return (example for example in self.aligned(rows, skipped) if example is not None)

    def aligned(self, rows: Iterable[Row], skipped: SkippedRows) -> Iterator[Example | None]:
        """Yield each row as tokens, or None where it is skipped.

        The answer ends with the first of ``end_ids`` that the template writes after it (some templates go on with
        the next header), or without one when ``data.end_of_turn`` is off. A row that is too long, or that the
        template garbles, raises ``DataError`` with its index, or is counted when ``data.on_bad_row`` says so.
        """
        if not self.tokenizer.chat_template:
            raise DataError("the tokenizer has no chat template", remedy="model.tokenizer = one that has")
        rows = iter(rows)
        while chunk := list(islice(rows, CHUNK_ROWS)):
            yield from self._chunk(chunk, skipped)

    def _chunk(self, chunk: Sequence[Row], skipped: SkippedRows) -> Iterator[Example | None]:
        texts = [self._guarded(row, self._texts, (row,), skipped) for row in chunk]
        columns = [self._encode(column) for column in zip(*(text or ("", "", "") for text in texts), strict=True)]
        for row, text, *ids in zip(chunk, texts, *columns, strict=True):
            yield None if text is None else self._guarded(row, self._example, tuple(ids), skipped)

    def _guarded(self, row: Row, step: Callable[..., T], arguments: tuple[Any, ...], skipped: SkippedRows) -> T | None:
        """Return what ``step`` makes of the row; a bad row is None and counted, or raises with its index."""
        try:
            return step(*arguments)
        except DataError as error:
            if self.settings.on_bad_row == "skip":
                skipped.add(error.what, (row.source, row.index))
                return None
            raise DataError(
                f"{row} cannot be trained on: {error.what}",
                seen=error.seen,
                allowed=error.allowed,
                remedy="raise data.max_length, repair the row, or leave bad rows out: --skip-bad",
            ) from None

    def _texts(self, row: Row) -> tuple[str, str, str]:
        """Return prompt, answer, and what the template writes after the answer."""
        from jinja2 import TemplateError

        answer, turns = row.answer.strip(), [*row.turns, {"role": "assistant", "content": row.answer}]
        try:
            prompt = self.prompt(row.turns)
            whole = str(self.tokenizer.apply_chat_template(turns, tokenize=False))
        except TemplateError as error:
            raise DataError(f"the chat template refuses the conversation: {error}") from error
        if not whole.startswith(prompt):
            raise DataError(
                "the chat template renders the prompt differently once the answer follows",
                seen=f"{prompt[-40:]!r} and {whole[: len(prompt)][-40:]!r}",
                allowed="a template whose prompt is a prefix of the conversation",
            )
        rest = whole[len(prompt) :]
        cut = rest.find(answer) + len(answer)
        if cut < len(answer):
            raise DataError(
                "the chat template changes the answer", seen=f"{rest[:60]!r}", allowed=f"{answer[:60]!r} in it"
            )
        return prompt, rest[:cut], rest[cut:] if self.settings.end_of_turn else ""

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        if not any(texts):
            return [[] for _ in texts]
        return list(self.tokenizer(list(texts), add_special_tokens=False)["input_ids"])

    def _example(self, prompt_ids: list[int], answer_ids: list[int], after_ids: list[int]) -> Example:
        ends = [place for place, token in enumerate(after_ids) if token in self.end_ids]
        ids = (*prompt_ids, *answer_ids, *after_ids[: ends[0] + 1 if ends else len(after_ids)])
        longest = self.settings.max_length
        if len(ids) > longest:
            raise DataError("row is too long", seen=f"{len(ids)} tokens", allowed=f"data.max_length = {longest}")
        if not answer_ids:
            raise DataError("the answer has no tokens", allowed="at least one token")
        return Example(ids, len(prompt_ids))
