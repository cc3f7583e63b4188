"""Finds the class behind a config's ``type`` and says what really went wrong when there is none.

OpenCompass answers any import failure with "not in the registry"; the true cause is usually a misspelt path, a
module that is not installed or an error inside the module.
"""

from __future__ import annotations

import importlib
from typing import Any

from dare_eval.errors import SetupError, nearest


def resolve(kind: str, target: Any, registry: Any = None) -> Any:
    """Return the object that ``target`` (object, dotted path or registered name) stands for.

    Raises ``SetupError`` with the real cause when it cannot be imported.
    """
    if not isinstance(target, str):
        return target
    module, _, attribute = target.rpartition(".")
    if not module:
        found = registry.get(target) if registry is not None else None
        if found is None:
            raise SetupError(f"{kind} '{target}' is not registered", seen=target, remedy="write the full dotted path")
        return found
    try:
        holder = importlib.import_module(module)
    except Exception as error:
        raise SetupError(
            f"{kind} '{target}' cannot be imported: {type(error).__name__}: {error}",
            seen=target,
            remedy="check the dotted path; the module must be importable from any folder (an installed package)",
        ) from error
    if not hasattr(holder, attribute):
        hint = nearest(attribute, vars(holder))
        raise SetupError(
            f"{kind} '{target}' does not exist" + (f"; did you mean '{module}.{hint}'?" if hint else ""),
            seen=target,
            remedy=f"check the name in {module}",
        )
    return getattr(holder, attribute)


def dotted_types(value: Any) -> set[str]:
    """Return every dotted path that stands under a ``type`` key anywhere in a config value."""
    if isinstance(value, dict):
        own = value.get("type")
        found = {own} if isinstance(own, str) and "." in own else set()
        return found.union(*(dotted_types(part) for part in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(dotted_types(part) for part in value))
    return set()
