"""From a reply of SGLang to a ``DecodeResult``: the same fields as in-process decoding, forwards included.

Step maps come from our plugin (or any build that speaks replay contract 1); a reply without them is refused, because
neither NFE nor a trajectory could be known. A block takes as many forwards as its largest step, and one more that
stores its keys; a prompt of at least one whole block takes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dare_eval.engines.ends import EndIds
from dare_eval.engines.http import need_mapping
from dare_eval.engines.rules import check_rules
from dare_eval.engines.sglang_names import CONTRACT, CONTRACT_VERSION, REPLAY_STEPS, REPLAY_TOKENS, RULES
from dare_eval.engines.token_lists import check_finished, check_whole, ids_at, whole_numbers
from dare_eval.errors import DataError, SetupError
from dare_eval.spec import DecodeSpec

if TYPE_CHECKING:
    from dare_eval.decoding import DecodeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a reply answers."""

    prompt_length: int
    spec: DecodeSpec
    ends: EndIds
    wall_s: float
    """Wall time of the batch divided by its rows."""


def result_of(reply: Mapping[str, Any], sent: Sent) -> DecodeResult:
    """Return the decoded row; raises ``SetupError`` for an engine without step maps, ``DataError`` for a bad reply."""
    from dare_eval.decoding import DecodeResult
    from dare_eval.decoding.results import trim

    meta = need_mapping(reply, "meta_info")
    check_finished(meta)
    if REPLAY_TOKENS not in meta or REPLAY_STEPS not in meta:
        raise SetupError(
            "the engine returns no step maps, so forwards and trajectories are unknown",
            seen=sorted(meta),
            allowed=f"{REPLAY_TOKENS}, {REPLAY_STEPS}",
            remedy="install this package into the engine's environment (its plugin is found by SGLang) and start it "
            "with the arguments of docs/engines.md",
        )
    if meta.get(CONTRACT) != [CONTRACT_VERSION]:
        raise DataError("unknown version of the replay keys", seen=meta.get(CONTRACT), allowed=str([CONTRACT_VERSION]))
    rules = meta.get(RULES)
    check_rules(rules[0] if isinstance(rules, list) and len(rules) == 1 else rules, sent.spec)
    tokens, visible = (
        ids_at(reply, "meta_info", REPLAY_TOKENS, ends=sent.ends),
        ids_at(reply, "output_ids", ends=sent.ends),
    )
    steps = whole_numbers(reply, "meta_info", REPLAY_STEPS)
    _check_steps(tokens, visible, steps, sent.spec)
    check_whole(tokens, sent.ends, sent.spec.gen_length)
    forwards, by_block = _forwards(steps, sent.prompt_length, sent.spec.block_length)
    response = tokens[: sent.spec.gen_length]
    kept, stop = trim(response, sent.ends.eos_id, set(sent.ends.stop_ids), sent.spec.gen_length)
    return DecodeResult(
        tokens=kept,
        nfe=sum(by_block),
        nfe_by_block=by_block,
        generated_tokens=len(kept),
        wall_s=sent.wall_s,
        step_map=forwards[: sent.spec.gen_length],
        stop=stop,
        response=response,
    )


def check_label(reply: Any, known: str | None) -> str | None:
    """Return the name of the weights that decoded a reply; raises ``SetupError`` when it is not the ``known`` one."""
    found = need_mapping(reply, "meta_info").get("weight_version")
    if known is not None and found != known:
        raise SetupError(
            "the server's weights changed in the middle: it was started again, or somebody else sent some",
            seen=f"weight_version = {found}",
            allowed=known,
            remedy="repeat the command (what is finished is kept); give every training run a server of its own",
        )
    return known if found is None else str(found)


def _check_steps(tokens: list[int], visible: list[int], steps: list[int], spec: DecodeSpec) -> None:
    """Raise ``DataError`` for a step map that no decoding of these tokens can have."""
    most = max(spec.block_length, spec.block_steps or 0)
    if len(tokens) != len(steps) or tokens[: len(visible)] != visible:
        seen = f"{len(visible)} visible tokens, {len(tokens)} replayed, {len(steps)} steps"
    elif any(not 1 <= step <= most for step in steps):
        seen = f"steps {sorted({step for step in steps if not 1 <= step <= most})[:5]}, of 1 to {most} in a block"
    else:
        return
    raise DataError(
        "tokens and step map of a reply do not belong together",
        seen=seen,
        remedy="check the engine's version (docs/engines.md)",
    )


def _forwards(steps: Sequence[int], prompt_length: int, block_length: int) -> tuple[list[int], list[int]]:
    """Return the 0-based forward of each position and the forwards per block."""
    before = 1 if prompt_length >= block_length else 0
    done, by_block, found, start = before, [], [], 0
    first = block_length - prompt_length % block_length
    while start < len(steps):
        block = steps[start : start + (block_length if start else first)]
        found += [done + step - 1 if step else -1 for step in block]
        passes = max(block) + 1
        by_block.append(passes + (before if not start else 0))
        done, start = done + passes, start + len(block)
    return found, by_block
