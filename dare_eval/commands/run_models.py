"""``dare-eval run --model ... --bench ...``: writes the config that these names mean, for the run to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dare_eval.errors import UsageError, unknown


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

    Raises ``UsageError`` when both or neither are given, and for unknown names. A path may stand beside a config:
    :func:`use_path` puts it in.
    """
    if config is not None:
        if any(names._replace(path=None)):
            raise UsageError(
                "a config has its own models and data sets",
                seen=str(config),
                allowed="either CONFIG (with --path), or --model with --bench or --suite",
            )
        return config
    if not names.models:
        raise UsageError("nothing to evaluate", remedy="name a config, or --model NAME with --bench NAME")
    return _written(names, work_dir)


def use_path(cfg: Any, path: str) -> None:
    """Put ``path`` in the place of the checkpoint that ``cfg`` names; raises ``UsageError`` when it names several."""
    combined = cfg.get("model_dataset_combinations") or []
    models = [*(cfg.get("models") or []), *(model for part in combined for model in part["models"])]
    known = sorted({str(model.get("path")) for model in models})
    if len(known) > 1:
        raise UsageError(
            "--path replaces one checkpoint, and the config names several",
            seen=", ".join(known),
            remedy="set DARE_MODEL_<NAME> for each of them",
        )
    for model in models:
        model["path"] = path


def _written(names: Names, work_dir: Path | None) -> Path:
    from dare_eval.presets.catalog import RunText, benchmarks

    models, suites = _split(names.models), _split(names.suites)
    for name in models:
        _check_model(name)
    chosen = benchmarks(_split(names.benches), suites)
    if not chosen:
        raise UsageError(
            "no benchmark is named", remedy="--bench gsm8k,math500 or --suite d1 (dare-eval ls benchmarks)"
        )
    if names.path and len(models) > 1:
        raise UsageError("--path replaces the checkpoint of one model", seen=", ".join(models))
    engine = None if names.engine in (None, "native") else names.engine
    changes = _changes(names.changes, engine) | ({"path": names.path} if names.path else {})
    what = (suites or chosen) if len(chosen) > 3 else chosen
    folder = work_dir or Path("runs") / re.sub(r"[^\w.+-]+", "_", "_".join([*models, *what]))[:120]
    text = str(RunText(models, chosen, str(folder), changes=changes, engine=names.engine or "native"))
    target = folder / "config.py"
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def _check_model(name: str) -> None:
    """Raise ``UsageError`` for a model without presets, naming the shipped tiny ones with the configs that run them."""
    from dare_eval.presets import models
    from dare_eval.presets.cards import known_cards

    if name in models():
        return
    tiny = {card.model: f"configs/eval/{card.config}.py" for card in known_cards().values() if card.config}
    if name in tiny:
        raise UsageError(f"model '{name}' is run by its config", seen=name, remedy=f"dare-eval run {tiny[name]}")
    listed = "; ".join(f"{model}: dare-eval run {config}" for model, config in sorted(tiny.items()))
    raise unknown("model", name, models(), remedy=f"dare-eval ls models; shipped tiny models run by config: {listed}")


def _split(values: Sequence[str]) -> list[str]:
    """Return the names of a repeatable option whose values may be comma-separated, each once."""
    return list(dict.fromkeys(name.strip() for value in values for name in value.split(",") if name.strip()))


def _changes(texts: Sequence[str], engine: str | None = None) -> dict[str, Any]:
    """Read ``key=value`` texts; values are YAML, so numbers and null are what they look like.

    A bare key is a decode setting; beside an engine ``url`` is the server's address.
    """
    from dare_eval.values import read_value

    groups = ("likelihood", *(("engine", "server") if engine else ()))
    allowed = ", ".join(["a decode setting", *(["url"] if engine else []), *(f"{group}.KEY" for group in groups)])
    found: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        group, _, name = key.rpartition(".")
        if not sign or not re.fullmatch(r"\w+", name) or group not in ("", "decoding", *groups):
            raise UsageError("--set takes key=value", seen=text, allowed=allowed)
        if group in groups:
            found.setdefault(group, {})[name] = read_value(key, value)
        else:
            found["url" if engine and key == "url" else f"decoding.{name}"] = read_value(key, value)
    return found
