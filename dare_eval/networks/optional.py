"""Import a package of an optional extra, or say which extra brings it."""

from __future__ import annotations

import importlib
from typing import Any

from dare_eval.errors import SetupError


def optional(module: str, *, purpose: str, extra: str) -> Any:
    """Return ``module``; raises ``SetupError`` naming ``purpose`` and the extra when it cannot be imported."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SetupError(
            f"{purpose} needs the package {module}",
            seen=str(error),
            remedy=f"pip install 'dare[{extra}]'",
        ) from error
