"""One lazy registry for everything an outside package may add: families, decoders, algorithms, scorers, rewards.

A registry maps a name to ``"module:attribute"``; the module is imported when the name is first asked for, so
listing names costs nothing. Entry points of the registry's group join on first use and may not replace a
built-in name. Look-ups of unknown names answer with the nearest one.

A part of an outside package that cannot be loaded, or is not what its group asks for, is an error that names entry
point and package for whoever asks for it by name; ``loadable`` goes on without it and says so once.
"""

from __future__ import annotations

import importlib
import logging
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dare_eval.errors import SetupError, UsageError, unknown

LOG = logging.getLogger(__name__)


class Registry:
    """Names of one kind, their built-in targets and the entry-point group that extends them.

    ``instance_of`` and ``subclass_of`` (``"module:class"``) say what a part of an outside package has to be.
    """

    def __init__(
        self, kind: str, group: str, builtin: dict[str, str], *, instance_of: str = "", subclass_of: str = ""
    ) -> None:
        self.kind, self.group = kind, group
        self._instance_of, self._subclass_of = instance_of, subclass_of
        self._targets: dict[str, str | EntryPoint] = dict(builtin)
        self._loaded: dict[str, Any] = {}
        self._left_out: set[str] = set()
        self._joined = False

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        self._join()
        return sorted(self._targets)

    def get(self, name: str) -> Any:
        """Return the object behind ``name``.

        Raises ``UsageError`` with the nearest name when it is unknown, ``SetupError`` naming entry point and package
        when an outside package brings it broken.
        """
        self._join()
        if name not in self._targets:
            raise unknown(self.kind, name, self._targets)
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def loadable(self) -> dict[str, Any]:
        """Return every object that can be loaded by name, built-in ones first.

        A broken one of an outside package is left out, with one warning: nobody asked for it by name.
        """
        self._join()
        found: dict[str, Any] = {}
        for name in self._targets:
            try:
                found[name] = self.get(name)
            except SetupError as error:
                if isinstance(self._targets[name], str):
                    raise
                if name not in self._left_out:
                    LOG.warning("left out: %s", error)
                self._left_out.add(name)
        return found

    def source(self, name: str) -> str:
        """Return where ``name`` comes from, for messages: ``built in``, or entry point and package."""
        self._join()
        target = self._targets[name]
        return "built in" if isinstance(target, str) else _described(target, self.group)

    def __contains__(self, name: object) -> bool:
        self._join()
        return name in self._targets

    def _join(self) -> None:
        if self._joined:
            return
        targets = dict(self._targets)
        for point in entry_points(group=self.group):
            if point.name in targets:
                other = targets[point.name]
                raise UsageError(
                    f"the name '{point.name}' of a {self.kind} is taken",
                    seen=_described(point, self.group),
                    allowed=f"a name of its own: '{point.name}' is "
                    + ("built in" if isinstance(other, str) else f"also {_described(other, self.group)}"),
                    remedy="rename the one of the outside package, or uninstall it",
                )
            targets[point.name] = point
        self._targets, self._joined = targets, True

    def _load(self, name: str) -> Any:
        target = self._targets[name]
        if isinstance(target, str):  # a backport of importlib.metadata may have replaced the EntryPoint class
            return _resolve(target)
        try:
            found = target.load()
        except Exception as error:  # a module of somebody else runs here: it may raise anything
            raise self._broken(name, target, f"cannot be loaded: {type(error).__name__}: {error}") from error
        self._check(name, target, found)
        return found

    def _check(self, name: str, point: EntryPoint, found: Any) -> None:
        """Refuse an object of another kind than the group asks for, before a run trips over it."""
        if self._instance_of and not isinstance(found, _resolve(self._instance_of)):
            raise self._broken(name, point, f"is no {self._instance_of}: {_shown(found)}")
        if self._subclass_of and not (isinstance(found, type) and issubclass(found, _resolve(self._subclass_of))):
            raise self._broken(name, point, f"is no subclass of {self._subclass_of}: {_shown(found)}")

    def _broken(self, name: str, point: EntryPoint, why: str) -> SetupError:
        return SetupError(
            f"the {self.kind} '{name}' of an outside package {why}",
            seen=_described(point, self.group),
            allowed="what docs/extending.md describes",
            remedy=f"repair, upgrade or uninstall {_package(point) or 'the package that brings it'}",
        )


def _resolve(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _described(point: EntryPoint, group: str) -> str:
    package = _package(point)
    origin = f" of the package {package}" if package else ""
    return f"{point.name} = {point.value} (entry point {group}{origin})"


def _package(point: EntryPoint) -> str | None:
    return point.dist.name if point.dist else None


def _shown(found: Any) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
