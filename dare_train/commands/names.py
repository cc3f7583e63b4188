"""Names of algorithms and the verb each belongs to; a name given to another verb is answered with the right one."""

from __future__ import annotations

from dare_eval.errors import UsageError, unknown

ALGORITHMS = {"preference": ("dpo", "vrpo")}


def check_algo(name: str | None, verb: str) -> str | None:
    """Return ``name`` when ``verb`` trains it; raises ``UsageError`` with the right verb or the nearest name."""
    if name is None or name in ALGORITHMS[verb]:
        return name
    for other, names in ALGORITHMS.items():
        if name in names:
            raise UsageError(
                f"'{name}' is not trained by 'dare-train {verb}'",
                seen=f"--algo {name}",
                allowed=", ".join(ALGORITHMS[verb]),
                remedy=f"dare-train {other} --algo {name}",
            )
    raise unknown("algorithm", name, ALGORITHMS[verb])
