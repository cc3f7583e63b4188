"""Commands whose options are the fields of a dataclass: stated once, read by typer, handed over as one object.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options:
        limit: Annotated[int | None, typer.Option(min=1, help="Only the first N items.")] = None

    @takes(Options)
    def look(options: Options) -> None: ...

Fields stand in the help in their order; one without a default is required. ``look(limit=3)`` is the same from Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Options = TypeVar("Options", bound="DataclassInstance")


def takes(
    kind: type[Options], *, leaving_out: Collection[str] = ()
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return the decorator that gives a command the fields of ``kind`` as its options, but for those left out."""
    types = get_type_hints(kind, include_extras=True)
    parameters = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=types[field.name],
        )
        for field in fields(kind)
        if field.name not in leaving_out
    ]

    def decorate(command: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            command(kind(**given))

        # typer reads both: they say what the command line may hold.
        with_options.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate
