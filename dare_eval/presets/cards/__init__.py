"""Published-number cards: a score with the settings it was measured with and the place that reports it.

Every scored row of the preset table is a card; the YAML files beside this one add other settings, algorithm tables
and the shipped tiny models. ``dare-eval cards`` lists them, ``dare-eval reproduce CARD`` runs one and judges it.
Leaves out the judging (``report.published``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from dare_eval import presets
from dare_eval.errors import DataError, unknown
from dare_eval.records.shapes import FLAG, TEXT, WHOLE, Rules, check_shape
from dare_eval.values import load_yaml

_FILES = ("llada", "dare_reruns", "algorithms_llada", "algorithms_dream", "tiny")
_TABLES = ("algorithms_llada", "algorithms_dream")
_NEEDED = ("model", "bench", "score", "source")
_TYPES: Rules = (
    (("model", "bench", "source", "variant", "metric", "config", "weights"), TEXT),
    (("n", "decimals"), WHOLE),
    (("likelihood",), FLAG),
)
_KEYS = frozenset((*_NEEDED, "spec", "variant", "likelihood", "n", "metric", "config", "weights", "decimals"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One published number."""

    name: str
    """``model/benchmark``, with ``@variant`` where one pair has several numbers."""
    model: str
    benchmark: str
    score: float
    """Percent."""
    decimals: int
    """Digits after the point that the source prints."""
    source: str
    spec: dict[str, Any] | None
    """The settings the source states, perhaps only some; None: it states none."""
    likelihood: bool = False
    n: tuple[int, ...] = ()
    """Items of the benchmark; several where the source does not say which of them it used."""
    metric: str | None = None
    """Metric of our rows; None: the headline one."""
    config: str | None = None
    """Packaged config (or a path) that measures it, where no preset model does."""
    weights: str | None = None
    """Start of the weight hash, where the source names the weights."""

    @property
    def runnable(self) -> bool:
        """True where the settings are known and there is something to run."""
        known = self.config is not None or (self.model in presets.models() and self.bench is not None)
        return known and self.spec is not None

    @property
    def bench(self) -> str | None:
        """The benchmark as ``dare-eval run`` calls it; None where this program has none."""
        from dare_eval.presets.catalog import known_benchmarks

        about = benchmarks().get(self.benchmark, {})
        name = about.get("likelihood") if self.likelihood else about.get("bench", self.benchmark)
        return name if name in known_benchmarks() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTable:
    """Published numbers of several algorithms on several benchmarks."""

    name: str
    title: str
    source: str
    base: str
    """The column that the others are compared with."""
    columns: tuple[str, ...]
    rows: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Scores (percent) by benchmark, in the order of ``columns``."""
    decimals: int = 1


@functools.cache
def benchmarks() -> dict[str, dict[str, Any]]:
    """Return what is known of each benchmark: items, metric, trivial scores (``benchmarks.yaml``)."""
    return _read("benchmarks")


def items_of(benchmark: str) -> tuple[int, ...]:
    """Return how many items a benchmark has; several numbers where sources differ, none where nobody says."""
    found = benchmarks().get(benchmark, {}).get("n", ())
    return (found,) if isinstance(found, int) else tuple(found)


@functools.cache
def known_cards() -> dict[str, Card]:
    """Return every card by name: preset table first, then the files, then the tables of algorithms."""
    return {card.name: card for card in [*_of_presets(), *_of_files(), *_of_tables()]}


def find_card(name: str) -> Card:
    """Return the card called ``name``, or the one in the YAML file ``name``.

    Raises ``UsageError`` with the nearest name, ``DataError`` for a file that holds no card.
    """
    if name in known_cards():
        return known_cards()[name]
    if name.endswith((".yaml", ".yml")):
        return read_card(Path(name))
    raise unknown("card", name, known_cards(), remedy="dare-eval cards lists them; a YAML file is a card too")


def read_card(path: Path) -> Card:
    """Return the card in a file of its own: ``model, bench, score, source``, and ``spec`` with what is stated.

    Raises ``DataError`` naming what is missing or not known.
    """
    import yaml

    try:
        read = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"the card cannot be read: {error}", seen=path) from None
    if not isinstance(read, dict):
        raise DataError("a card is a mapping", seen=path, allowed=", ".join(sorted(_KEYS)))
    missing, odd = [key for key in _NEEDED if read.get(key) is None], sorted(set(map(str, read)) - _KEYS)
    spec = read.get("spec")
    score = read.get("score")
    number = isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
    if missing or odd or not isinstance(spec, dict | None) or not number:
        raise DataError(
            "not a card",
            seen=f"{path}: missing {missing}, not known {odd}, score {score!r}",
            allowed=f"{', '.join(_NEEDED)} (a number for score), and {', '.join(sorted(_KEYS - set(_NEEDED)))}",
        )
    check_shape(read, _TYPES, f"card {path}")
    digits = len(str(read["score"]).partition(".")[2])
    return _card({"config": None, **read}, {"decimals": digits, "source": str(read["source"])})


@functools.cache
def tables() -> dict[str, CardTable]:
    """Return the published tables of algorithms by name."""
    found = {}
    for name in _TABLES:
        read = _read(name)
        rows = {bench: tuple(map(float, scores)) for bench, scores in read["rows"].items()}
        about = {key: read[key] for key in ("title", "source", "base", "decimals")}
        found[read["table"]] = CardTable(name=read["table"], columns=tuple(read["columns"]), rows=rows, **about)
    return found


def _of_presets() -> Iterator[Card]:
    for model in presets.models():
        for preset in presets.rows(model):
            yield from _of_preset(preset, likelihood=False)
        for name in (presets.entry(model).get("likelihood") or {}).get("rows", {}):
            yield from _of_preset(presets.find_likelihood(model, name), likelihood=True)


def _of_preset(preset: presets.Preset, *, likelihood: bool) -> Iterator[Card]:
    if preset.score is None:
        return
    about = benchmarks().get(preset.benchmark, {})
    yield Card(
        name=_name(preset.model, preset.benchmark, "likelihood" if likelihood else None),
        model=preset.model,
        benchmark=preset.benchmark,
        score=preset.score,
        decimals=_digits(preset, "likelihood" if likelihood else "rows"),
        source=preset.source,
        spec=dict(preset.decoding),
        likelihood=likelihood,
        n=items_of(preset.benchmark),
        metric=about.get("metric"),
    )


def _digits(preset: presets.Preset, part: str) -> int:
    """Return how many digits the preset table prints after the point: 56.40 is not 56.4."""
    about = _printed()[preset.model][part]
    row = (about["rows"] if part == "likelihood" else about)[preset.benchmark]
    return len(row["score"].partition(".")[2])


@functools.cache
def _printed() -> dict[str, Any]:
    import yaml

    text = resources.files(presets.__name__).joinpath("table.yaml").read_text()
    found: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)  # every value as the text it is
    return found


def _of_files() -> Iterator[Card]:
    for file in _FILES:
        read = _read(file)
        for row in read.get("cards", ()):
            yield _card(row, read)


def _card(row: Mapping[str, Any], defaults: Mapping[str, Any]) -> Card:
    bench, likelihood = str(row["bench"]), bool(row.get("likelihood"))
    about = benchmarks().get(bench, {})
    return Card(
        name=_name(row["model"], bench, row.get("variant") or ("likelihood" if likelihood else None)),
        model=str(row["model"]),
        benchmark=bench,
        score=float(row["score"]),
        decimals=defaults["decimals"] if row.get("decimals") is None else max(0, row["decimals"]),
        source=row.get("source", defaults["source"]),
        spec=row.get("spec"),
        likelihood=likelihood,
        n=(row["n"],) if row.get("n") else items_of(bench),
        metric=row.get("metric", about.get("metric")),
        config=row.get("config"),
        weights=row.get("weights"),
    )


def _of_tables() -> Iterator[Card]:
    for table in tables().values():
        for bench, scores in table.rows.items():
            for column, score in zip(table.columns, scores, strict=True):
                yield Card(
                    name=_name(table.name, bench, column),
                    model=table.name,
                    benchmark=bench,
                    score=score,
                    decimals=table.decimals,
                    source=table.source,
                    spec=None,
                    n=items_of(bench),
                    metric=benchmarks().get(bench, {}).get("metric"),
                )


def _name(model: str, bench: str, variant: str | None) -> str:
    return f"{model}/{bench}" + (f"@{variant}" if variant else "")


def _read(name: str) -> dict[str, Any]:
    import yaml

    read: dict[str, Any] = yaml.safe_load(resources.files(__package__).joinpath(f"{name}.yaml").read_text())
    return read
