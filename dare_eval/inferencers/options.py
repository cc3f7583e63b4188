"""Context and continuations of a multiple-choice item, found in the token ids of its labelled prompts.

The longest common prefix of all options is the context; what follows it is each option's continuation. Working on
ids of whole prompts, never on pieces of text tokenized apart, keeps the tokens exactly those of the full prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

Ids = Sequence[int]
Pair = tuple[list[int], list[int]]
"""Token ids of a context and of its continuation."""


def common_prefix(rows: Sequence[Sequence[Any]]) -> int:
    """Return the number of leading entries (ids or characters) that all ``rows`` share."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False)))


def split_options(prompts: Sequence[Ids]) -> list[Pair]:
    """Return (context, continuation) per prompt; every continuation keeps at least one id.

    An option that is the beginning of another one would otherwise have nothing to score, and would always win.
    """
    start = min(common_prefix(prompts), *(max(len(ids) - 1, 0) for ids in prompts))
    return [(list(ids[:start]), list(ids[start:])) for ids in prompts]


def split_after(context: Ids, prompt: Ids) -> Pair:
    """Return ``prompt`` cut where it stops to agree with ``context``: a token across the border is scored whole."""
    start = common_prefix([context, prompt])
    return list(prompt[:start]), list(prompt[start:])
