"""Reads ``attacks.txt``: the hostile programs, by group and name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ENDINGS = {
    "HONEST": "def f(x):\n    return x + 1\n",  # the name is there: the verdict must not come from a missing one
    "FIND": (
        "def f(x):\n    import re\n    for text in texts():\n"
        "        found = re.search(r'SECRET_{TOKEN} = (\\d+)', text)\n"
        "        if found:\n            return int(found[1])\n    return 0\n"
    ),
}


class Attack(NamedTuple):
    """A hostile program."""

    group: str
    name: str
    code: str


def read() -> list[Attack]:
    text = (Path(__file__).parent / "attacks.txt").read_text()
    _, *parts = re.split(r"^## (\w+): (.+)\n", text, flags=re.MULTILINE)
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [Attack(group, name, _ended(code.strip("\n"))) for group, name, code in found]


def _ended(code: str) -> str:
    body, _, last = code.rpartition("\n")
    return f"{body}\n{ENDINGS[last]}" if last in ENDINGS else code + "\n"


ALL = read()
