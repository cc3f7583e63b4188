"""Presets: which decode settings a model uses on a benchmark, where they come from, and the score reported there.

One table (``table.yaml``) for all models; configs name a preset and repeat none of its values. Likelihood tasks have
settings of their own in the same table. Leaves out prompts and data. ``dare-eval ls presets`` prints the table.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from dare_eval.errors import UsageError, unknown

# Benchmarks that share the settings of another one where a model has no row of their own.
SAME_SETTINGS = {"math500": "math", "sanitized_mbpp": "mbpp", "humaneval_plus": "humaneval"}
_ABOUT = ("score", "source")
_UNPUBLISHED = "nobody published settings for this benchmark: the model's general ones"


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of one model on one benchmark; ``score`` is the percent that ``source`` reports, if it does.

    ``decoding`` are the keys of a ``DecodeSpec``, or of ``LikelihoodOptions`` for a likelihood task.
    """

    model: str
    benchmark: str
    decoding: dict[str, Any]
    source: str
    score: float | None = None


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """Return the table as read from ``table.yaml``: model name to wrapper, path, defaults and rows."""
    import yaml

    loaded: dict[str, dict[str, Any]] = yaml.safe_load(resources.files(__package__).joinpath("table.yaml").read_text())
    return loaded


def models() -> list[str]:
    """Return the names of all models that have presets."""
    return sorted(table())


def entry(model: str) -> dict[str, Any]:
    """Return the table entry of ``model``; raises ``UsageError`` with the nearest name."""
    if model not in table():
        raise unknown("preset model", model, table(), remedy="dare-eval ls models")
    return table()[model]


def find(model: str, benchmark: str) -> Preset:
    """Return the preset of ``model`` on ``benchmark``; a benchmark without a row gets the model's other settings."""
    about = entry(model)
    source, row = about["source"], about["rows"].get(benchmark)
    if row is None and SAME_SETTINGS.get(benchmark) in about["rows"]:
        shared = SAME_SETTINGS[benchmark]
        row = {key: value for key, value in about["rows"][shared].items() if key != "score"}
        source = f"{row.get('source', source)}; settings of {shared}"
        row["source"] = source
    if row is None:
        row = {"source": _UNPUBLISHED}
    return _preset(model, benchmark, {**about["defaults"], **about["other"], **row}, source)


def find_likelihood(model: str, benchmark: str | None) -> Preset:
    """Return the likelihood settings of ``model`` on ``benchmark``; without any in the table, those of the library."""
    about = entry(model).get("likelihood") or {"source": _UNPUBLISHED, "rows": {}}
    row = about["rows"].get(benchmark) or {"source": f"{about['source']}; no row for this benchmark"}
    return _preset(model, benchmark or "", {**about.get("defaults", {}), **row}, about["source"])


def _preset(model: str, benchmark: str, settings: Mapping[str, Any], source: str) -> Preset:
    chosen = {key: value for key, value in settings.items() if key not in _ABOUT}
    return Preset(model, benchmark, chosen, settings.get("source", source), settings.get("score"))


def rows(model: str) -> list[Preset]:
    """Return the presets of ``model`` that the table states, in its order."""
    return [find(model, benchmark) for benchmark in entry(model)["rows"]]


def bind(decoding: Mapping[str, Any], benchmark: str | None) -> dict[str, Any]:
    """Replace ``preset`` in decode settings by the preset's values; keys given beside it win.

    Raises ``UsageError`` when the data set's benchmark is not known, since the preset could not be chosen.
    """
    given = dict(decoding)
    model = given.pop("preset", None)
    if model is None:
        return given
    if benchmark is None:
        raise UsageError(
            f"no benchmark is known for this data set, so preset '{model}' cannot be applied",
            remedy="give decoding=dict(gen_length=..., block_length=..., ...) in the model config",
        )
    return {**find(model, benchmark).decoding, **given}


def bind_likelihood(likelihood: Mapping[str, Any], preset: str | None, benchmark: str | None) -> dict[str, Any]:
    """Return likelihood settings with those of a preset filled in; keys given win.

    ``preset`` is the one the decode settings name, used when the likelihood settings name none.
    """
    given = dict(likelihood)
    model = given.pop("preset", preset)
    return given if model is None else {**find_likelihood(model, benchmark).decoding, **given}
