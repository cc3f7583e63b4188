"""Values of ``key=value`` options: read as YAML, so that numbers, lists and null are what they look like."""

from __future__ import annotations

from typing import Any

from dare_eval.errors import UsageError


def read_value(key: str, text: str) -> Any:
    """Return ``text`` as a value; raises ``UsageError`` when it is no YAML."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or str(error)
        raise UsageError(
            f"the value of '{key}' cannot be read: {problem}",
            seen=text,
            allowed="a number, a text, a list as in [1, 2], or null",
            remedy=f"quote it: '{key}=...'",
        ) from error
