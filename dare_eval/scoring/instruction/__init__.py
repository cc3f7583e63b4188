"""Instruction following: every verifiable instruction of a prompt is checked by a rule, none by a judge.

The 25 instruction types and their arguments are those of IFEval (arXiv 2311.07911). ``correct`` is the strict verdict
on the whole prompt (all instructions followed); the detail holds the verdict per instruction, strict and loose. Loose
means that the instruction is followed after dropping the first line, the last line, or the asterisks. Sentences are
counted by a rule of our own, because the reference's tokenizer needs a download.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dare_eval.scoring import text
from dare_eval.scoring.base import Score, gold_failure
from dare_eval.scoring.instruction.checks import CHECKS


def score_instruction(response: str, reference: Any, **_: Any) -> Score:
    """Score a reply against ``reference``: a mapping (or its JSON) with ``instruction_id_list`` and ``kwargs``.

    A reference that names an unknown instruction or lacks an argument is an unparsable gold. An empty reply follows
    no instruction.
    """
    wanted = read_instructions(reference)
    if isinstance(wanted, str):
        return gold_failure(reference, wanted)
    cleaned = text.clean(response)
    reply = cleaned.text
    strict = {f"{number}:{name}": _follows(name, arguments, reply) for number, (name, arguments) in enumerate(wanted)}
    loose = {
        f"{number}:{name}": any(_follows(name, arguments, variant) for variant in variants(reply))
        for number, (name, arguments) in enumerate(wanted)
    }
    followed = all(strict.values())
    facts = {"strict": strict, "loose": loose, "loose_correct": all(loose.values()), "masks_left": cleaned.masks_left}
    shown = reply.strip() or None
    rule = "instructions" if shown else "no_answer"
    return Score(followed, float(followed), shown, rule, facts)


def read_instructions(reference: Any) -> list[tuple[str, dict[str, Any]]] | str:
    """Return the (name, arguments) pairs of a reference, or in words what is wrong with it."""
    try:
        wanted = json.loads(reference) if isinstance(reference, str) else reference
        names, arguments = wanted["instruction_id_list"], wanted["kwargs"]
    except (KeyError, TypeError, ValueError):
        return "needs 'instruction_id_list' and 'kwargs'"
    if not names or len(names) != len(arguments):
        return "needs as many 'kwargs' as instructions, and at least one"
    pairs = []
    for name, given in zip(names, arguments, strict=True):
        if name not in CHECKS:
            return f"unknown instruction '{name}'"
        needed = CHECKS[name].arguments
        used = {key: value for key, value in dict(given or {}).items() if key in needed and value is not None}
        missing = [key for key in needed if key not in used]
        if missing:
            return f"instruction '{name}' lacks {', '.join(missing)}"
        pairs.append((str(name), used))
    return pairs


def variants(reply: str) -> Iterator[str]:
    """Yield the eight readings of the loose verdict."""
    lines = reply.split("\n")
    for kept in (reply, "\n".join(lines[1:]).strip(), "\n".join(lines[:-1]).strip(), "\n".join(lines[1:-1]).strip()):
        yield kept
        yield kept.replace("*", "")


def _follows(name: str, arguments: dict[str, Any], reply: str) -> bool:
    return bool(reply.strip()) and bool(CHECKS[name].test(reply, **arguments))
