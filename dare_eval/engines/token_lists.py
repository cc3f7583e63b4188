"""Lists of numbers in replies of engines, checked: a reply that is JSON may still be no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dare_eval.engines.ends import EndIds
from dare_eval.engines.http import bad_reply, need
from dare_eval.errors import DataError, SetupError


def ids_at(reply: Any, *path: str, ends: EndIds) -> list[int]:
    """Return the token ids at ``path``; raises ``DataError`` for what the vocabulary does not hold."""
    found = whole_numbers(reply, *path)
    top = ends.vocab_size
    strange = [one for one in found if one < 0 or (top is not None and one >= top)]
    if strange:
        raise DataError(
            "the server's reply holds tokens outside the vocabulary",
            seen=f"{'/'.join(path)}: {strange[:5]}",
            allowed=f"0 to {top - 1 if top else 'the end of the vocabulary'}",
            remedy="check that the server runs the same checkpoint",
        )
    return found


def whole_numbers(reply: Any, *path: str) -> list[int]:
    """Return the whole numbers at ``path`` of a reply."""
    found = need(reply, *path)
    if not isinstance(found, list) or any(isinstance(one, bool) or not isinstance(one, int) for one in found):
        raise bad_reply(reply, "has another form than its protocol says", f"{'/'.join(path)}: a list of whole numbers")
    return found


def check_finished(meta: Mapping[str, Any]) -> None:
    """Raise ``SetupError`` when the engine gave a row up: what it has decoded until then is no answer."""
    reason = meta.get("finish_reason")
    kind = reason.get("type") if isinstance(reason, Mapping) else reason
    if kind in ("abort", "error"):
        message = reason.get("message") if isinstance(reason, Mapping) else None
        raise SetupError(
            "the engine gave up on a prompt",
            seen=message or kind,
            remedy="see the engine's log, and repeat the command: finished items are kept",
        )


def check_whole(response: Sequence[int], ends: EndIds, gen_length: int, *, stopped: bool = False) -> None:
    """Raise ``DataError`` for a response that stops before an end token and before its budget."""
    if len(response) < gen_length and not stopped and not set(response) & set(ends.stop_ids):
        raise DataError(
            "the engine returned fewer tokens than were asked for, and no end token",
            seen=f"{len(response)} tokens",
            allowed=f"{gen_length} tokens, or an end token (one of {sorted(ends.stop_ids)})",
            remedy="check the engine's longest context: prompt and response must fit",
        )
    if ends.mask_id is not None and ends.mask_id in response[:gen_length]:
        raise DataError(
            "the server's reply holds masks: its last block was not decoded to the end",
            seen=f"token {ends.mask_id} at position {list(response).index(ends.mask_id)}",
            remedy="check the engine's version (docs/engines.md)",
        )
