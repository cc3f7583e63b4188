"""Names of algorithms and the verb each belongs to; a name given to another verb is answered with the right one."""

from __future__ import annotations

from collections.abc import Sequence

from dare_eval.errors import UsageError, unknown

PREFERENCE = ("dpo", "vrpo")
VERBS = ("preference", "rl")


def names_of(verb: str) -> Sequence[str]:
    """Return the names that ``verb`` trains, those of outside packages included."""
    if verb == "preference":
        return PREFERENCE
    from dare_train.rl.algorithm import algorithm_names

    return algorithm_names()


def check_algo(name: str | None, verb: str) -> None:
    """Raise ``UsageError`` with the right verb or the nearest name unless ``verb`` trains ``name``."""
    if name is None or name in names_of(verb):
        return
    for other in VERBS:
        if name in names_of(other):
            raise UsageError(
                f"'{name}' is not trained by 'dare-train {verb}'",
                seen=f"--algo {name}",
                allowed=", ".join(names_of(verb)),
                remedy=f"dare-train {other} --algo {name}",
            )
    raise unknown("algorithm", name, names_of(verb))
