"""Values of ``key=value`` options and of files: read as YAML, so that numbers, lists and null are what they look like.

Numbers are those of YAML 1.2 and Python: ``1e-1``, ``.5e3`` and ``1_000`` are numbers and ``010`` is ten, where YAML
1.1 sees texts and an octal eight.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

from dare_eval.errors import UsageError

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_INT = re.compile(rf"[-+]?(?:0x[0-9a-fA-F]+|{_DIGITS})$")
_FLOAT = re.compile(
    rf"[-+]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?(?:[eE][-+]?[0-9]+)?"
    rf"|\.{_DIGITS}(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|\.(?:nan|NaN|NAN)$"
)
_BRACKETS = {"[": 1, "{": 1, "]": -1, "}": -1}


def read_value(key: str, text: str) -> Any:
    """Return ``text`` as a value; raises ``UsageError`` when it is no YAML."""
    import yaml

    try:
        return load_yaml(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that no calendar has
        problem = getattr(error, "problem", None) or str(error)
        raise UsageError(
            f"the value of '{key}' cannot be read: {problem}",
            seen=text,
            allowed="a number, a text, a list as in [1, 2], or null",
            remedy=f"quote it: '{key}=...'",
        ) from error


def read_values(key: str, text: str) -> list[Any]:
    """Return the values of ``text`` between its commas; those inside brackets or quotes separate nothing.

    Raises ``UsageError`` when one of them is no YAML.
    """
    return [read_value(key, part) for part in split_values(text) if part]


def load_yaml(text: str) -> Any:
    """Return what the YAML ``text`` holds; raises ``yaml.YAMLError``, and ``ValueError`` for an impossible date."""
    import yaml

    try:
        return yaml.load(text, Loader=_with_numbers(yaml.SafeLoader))
    except (LookupError, AttributeError, TypeError) as error:  # a tag such as !!bool before what is none
        raise yaml.YAMLError(f"a tag does not fit its value: {error}") from error


def dump_yaml(value: Any) -> str:
    """Return ``value`` as YAML that :func:`load_yaml` reads back, keys in their order.

    Texts that YAML 1.1 would take for numbers (``0b11``, ``12:30``) are quoted for the sake of other readers.
    """
    import yaml

    dumper = _with_numbers(yaml.SafeDumper)
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True))


def split_values(text: str) -> list[str]:
    """Return the parts of ``text`` between the commas outside of brackets and quotes, stripped."""
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"" and parts[-1].rstrip()[-1:] in ("", *"[{,:"):
            quote = sign
        else:
            depth += _BRACKETS.get(sign, 0)
        if sign == "," and not quote and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


@functools.cache
def _with_numbers(kind: Any) -> Any:
    """Return YAML's safe loader or dumper with the numbers above in the place of YAML 1.1's."""
    whole, real = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
    reads = hasattr(kind, "add_constructor")
    kept = {
        sign: [(tag, pattern) for tag, pattern in found if not reads or tag not in (whole, real)]
        for sign, found in kind.yaml_implicit_resolvers.items()
    }
    made: Any = type(kind.__name__, (kind,), {"yaml_implicit_resolvers": kept})
    made.add_implicit_resolver(whole, _INT, list("-+0123456789"))
    made.add_implicit_resolver(real, _FLOAT, list("-+.0123456789"))
    if reads:
        made.add_constructor(whole, _whole_number)
        made.add_constructor(real, _real_number)
    return made


def _whole_number(loader: Any, node: Any) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 16 if "x" in text else 10)


def _real_number(loader: Any, node: Any) -> float | str:
    """Return the number; a text of digits around one ``e`` (a hash of a commit) that no float can hold stays a text."""
    text = str(loader.construct_scalar(node))
    found: float = loader.construct_yaml_float(node)
    return found if math.isfinite(found) or "inf" in text.lower() or "nan" in text.lower() else text
