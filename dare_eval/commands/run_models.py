"""``dare-eval run --model ... --bench ...``: writes the config that these names mean, for the run to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dare_eval.errors import UsageError


class Names(NamedTuple):
    """What the command line names in the place of a config; every list may hold comma-separated names."""

    models: Sequence[str]
    benches: Sequence[str]
    suites: Sequence[str]
    changes: Sequence[str] = ()
    """``key=value`` decode settings (``likelihood.key=value`` for likelihood tasks)."""
    path: str | None = None
    """Checkpoint in the place of the model's own."""
    engine: str | None = None
    """What decodes; None for the native loop."""


def chosen_config(config: Path | None, names: Names, work_dir: Path | None) -> Path:
    """Return ``config``, or the config that ``names`` mean, written into the folder of its runs.

    Raises ``UsageError`` when both or neither are given, and for unknown names.
    """
    if config is not None:
        if any(names):
            raise UsageError(
                "a config has its own models and data sets",
                seen=str(config),
                allowed="either CONFIG, or --model with --bench or --suite",
            )
        return config
    if not names.models:
        raise UsageError("nothing to evaluate", remedy="name a config, or --model NAME with --bench NAME")
    return _written(names, work_dir)


def _written(names: Names, work_dir: Path | None) -> Path:
    from dare_eval.presets.catalog import RunText, benchmarks

    models, suites = _split(names.models), _split(names.suites)
    chosen = benchmarks(_split(names.benches), suites)
    if not chosen:
        raise UsageError(
            "no benchmark is named", remedy="--bench gsm8k,math500 or --suite d1 (dare-eval ls benchmarks)"
        )
    if names.path and len(models) > 1:
        raise UsageError("--path replaces the checkpoint of one model", seen=", ".join(models))
    changes = _changes(names.changes) | ({"path": names.path} if names.path else {})
    what = (suites or chosen) if len(chosen) > 3 else chosen
    folder = work_dir or Path("runs") / re.sub(r"[^\w.+-]+", "_", "_".join([*models, *what]))[:120]
    text = str(RunText(models, chosen, str(folder), changes=changes, engine=names.engine or "native"))
    target = folder / "config.py"
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def _split(values: Sequence[str]) -> list[str]:
    """Return the names of a repeatable option whose values may be comma-separated, each once."""
    return list(dict.fromkeys(name.strip() for value in values for name in value.split(",") if name.strip()))


def _changes(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``key=value`` texts; values are YAML, so numbers and null are what they look like."""
    import yaml

    found: dict[str, Any] = {}
    likelihood: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not re.fullmatch(r"(likelihood\.)?\w+", key):
            raise UsageError("--set takes key=value", seen=text, allowed="a decode setting, or likelihood.KEY")
        if key.startswith("likelihood."):
            likelihood[key.removeprefix("likelihood.")] = yaml.safe_load(value)
        else:
            found[f"decoding.{key}"] = yaml.safe_load(value)
    return found | ({"likelihood": likelihood} if likelihood else {})
