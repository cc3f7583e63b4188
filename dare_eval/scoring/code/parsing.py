"""One guarded call of Python's parser, for text that may be anything and threads that may be many."""

from __future__ import annotations

import ast
import os
import threading
import warnings

_TRIES = 20
_lock = threading.Lock()


def parse(text: str) -> ast.Module:
    """Return the syntax tree of ``text``, which must also compile; nothing is executed.

    Raises ``SyntaxError`` for everything that is not Python, also null bytes and nesting that no parser stack holds.
    """
    for _ in range(_TRIES):
        try:
            with _lock, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "invalid escape sequence" and its like are no business of the log
                tree = ast.parse(text)
                compile(
                    tree, "<text>", "exec", dont_inherit=True
                )  # "return" outside a function parses, and only parses
                return tree
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise SyntaxError(f"{type(error).__name__}: {error}") from error
        except SystemError:
            # CPython 3.11 keeps one recursion count for the parsers of all threads; one outside this lock disturbed it.
            continue
    raise SyntaxError("the parser was disturbed by other threads")


def _fresh_lock() -> None:
    """Replace a lock that another thread may have held when this process was forked."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_fresh_lock)
