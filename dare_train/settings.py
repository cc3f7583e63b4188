"""Reads a run's settings: YAML file, then ``--set a.b=c`` overrides, then validation with errors one can act on.

Leaves out what the settings mean (``dare_train.config``). No torch here.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from dare_eval.errors import DareError, UsageError, unknown
from dare_eval.values import dump_yaml, load_yaml

C = TypeVar("C", bound=BaseModel)


def load_config(kind: type[C], path: Path | None, overrides: Sequence[str] = ()) -> C:
    """Return the settings of ``path`` with ``overrides`` (``a.b=value``, value in YAML) applied.

    Raises ``UsageError`` for a missing or unreadable file, an unknown key (with the nearest name), a missing key
    and a value out of range.
    """
    record = read_yaml(path) if path else {}
    for text in overrides:
        _apply(record, text)
    return validate(kind, record)


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in ``path``; raises ``UsageError`` when there is none."""
    try:
        record = load_yaml(path.read_text())
    except OSError as error:
        raise UsageError(
            f"the training config cannot be read: {error.strerror}", seen=path, remedy="--config PATH of a YAML file"
        ) from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: bytes that are no UTF-8, a date that no calendar has
        raise UsageError(f"the training config is not valid YAML: {error}", seen=path) from None
    if not isinstance(record, dict):
        raise UsageError("the training config is not a mapping", seen=f"{path}: {type(record).__name__}")
    return record


def validate(kind: type[C], record: Mapping[str, Any]) -> C:
    """Return ``record`` as ``kind``; raises ``UsageError`` for the first thing that is wrong with it."""
    try:
        return kind.model_validate(dict(record))
    except ValidationError as error:
        raise _readable(kind, error) from None


def to_yaml(config: BaseModel) -> str:
    """Return the resolved settings as YAML, in the order in which they are defined."""
    return dump_yaml(json.loads(config.model_dump_json()))


def _apply(record: dict[str, Any], text: str) -> None:
    key, sign, value = text.partition("=")
    if not sign or not all(key.split(".")):
        raise UsageError("an override is not of the form a.b=value", seen=text, allowed="--set train.max_steps=100")
    try:
        apply_override(record, key, load_yaml(value))
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"the value of an override is not valid YAML: {error}", seen=f"--set {text}") from None


def apply_override(record: dict[str, Any], key: str, value: Any) -> None:
    """Set the dotted ``key`` of ``record``; raises ``UsageError`` where it leads into a value."""
    *parts, last = key.split(".")
    here = record
    for number, part in enumerate(parts, 1):
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            raise UsageError(
                f"'{part}' in the override of {key} is a value, not a group of settings",
                seen=key,
                allowed=f"--set {'.'.join(parts[:number])}=VALUE",
            )
    here[last] = value


def _readable(kind: type[BaseModel], error: ValidationError) -> DareError:
    first = error.errors(include_url=False)[0]
    # Where a setting may be of several kinds, pydantic names the kind it tried as if it were a key.
    where = [str(part) for part in first["loc"] if "[" not in str(part)]
    key = ".".join(where)
    if first["type"] == "extra_forbidden":
        fields = _section(kind, where[:-1]).model_fields
        prefix = ".".join([*where[:-1], ""])
        found = unknown("training setting", where[-1], fields)
        found.allowed = ", ".join(prefix + name for name in sorted(fields))
        return UsageError(found.what, seen=key, allowed=found.allowed)
    if first["type"] == "missing":
        return UsageError(
            f"training setting '{key}' is missing", remedy=f"set it in the config or with --set {key}=..."
        )
    what = first["msg"].removeprefix("Value error, ")
    return UsageError(f"training setting '{key}': {what}" if key else what, seen=first["input"])


def _section(kind: type[BaseModel], path: Sequence[str]) -> type[BaseModel]:
    for name in path:
        annotation = kind.model_fields[name].annotation
        options = (annotation, *typing.get_args(annotation))
        kind = next(item for item in options if isinstance(item, type) and issubclass(item, BaseModel))
    return kind
