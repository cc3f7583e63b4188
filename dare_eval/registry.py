"""One lazy registry for everything an outside package may add: families, decoders, algorithms, scorers, rewards.

A registry maps a name to ``"module:attribute"``; the module is imported when the name is first asked for, so
listing names costs nothing. Entry points of the registry's group join on first use and may not replace a
built-in name. Look-ups of unknown names answer with the nearest one.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dare_eval.errors import UsageError, unknown


class Registry:
    """Names of one kind, their built-in targets and the entry-point group that extends them."""

    def __init__(self, kind: str, group: str, builtin: dict[str, str]) -> None:
        self.kind, self.group = kind, group
        self._targets: dict[str, str | EntryPoint] = dict(builtin)
        self._loaded: dict[str, Any] = {}
        self._joined = False

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        self._join()
        return sorted(self._targets)

    def get(self, name: str) -> Any:
        """Return the object behind ``name``; raises ``UsageError`` with the nearest name when it is unknown."""
        self._join()
        if name not in self._targets:
            raise unknown(self.kind, name, self._targets)
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        self._join()
        return name in self._targets

    def _join(self) -> None:
        if self._joined:
            return
        for point in entry_points(group=self.group):
            if point.name in self._targets:
                raise UsageError(
                    f"the name '{point.name}' of a {self.kind} is taken",
                    seen=f"{point.value} (entry point {self.group})",
                    remedy="rename the one of the outside package",
                )
            self._targets[point.name] = point
        self._joined = True

    def _load(self, name: str) -> Any:
        target = self._targets[name]
        if not isinstance(target, str):  # a backport of importlib.metadata may have replaced the EntryPoint class
            return target.load()
        module, _, attribute = target.partition(":")
        return getattr(importlib.import_module(module), attribute)
