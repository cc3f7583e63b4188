"""What there is to run: benchmarks, batteries of them, and the models that stand for each family (``catalog.yaml``).

Also writes the config of a run from those names: the files in ``configs/eval`` are this text, and ``dare-eval run
--model ... --bench ...`` writes the same for any combination. Leaves out the settings of models (``presets``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata, resources
from typing import Any

from dare_eval.errors import UsageError, unknown
from dare_eval.presets import entry

PACKAGED = "dare_eval.configs"
"""Where the configs are found from anywhere; files below ``configs/eval`` use ``..`` instead."""
GROUP = "dare.benchmarks"
"""Entry points of outside packages: the name of a benchmark and its data set config as ``module:variable``."""


@functools.cache
def catalog() -> dict[str, dict[str, Any]]:
    """Return ``catalog.yaml`` as read."""
    import yaml

    text = resources.files(__package__).joinpath("catalog.yaml").read_text()
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return loaded


@functools.cache
def known_benchmarks() -> dict[str, dict[str, Any]]:
    """Return the catalog's benchmarks and those of outside packages; ``UsageError`` for a name given twice.

    Nothing of the outside package is imported: OpenCompass reads the config it names.
    """
    found: dict[str, dict[str, Any]] = dict(catalog()["benchmarks"])
    for point in metadata.entry_points(group=GROUP):
        if point.name in found:
            raise UsageError(
                f"the name '{point.name}' of a benchmark is taken",
                seen=f"{point.value} (entry point {GROUP})",
                remedy="rename the one of the outside package",
            )
        about = f"from {point.dist.name}" if point.dist else "from an outside package"
        found[point.name] = {"config": point.value, "about": about}
    return found


def benchmarks(names: Iterable[str] = (), suites: Iterable[str] = ()) -> list[str]:
    """Return benchmark names, those of ``suites`` included, each once; raises ``UsageError`` with the nearest name."""
    found = list(names)
    for suite in suites:
        if suite not in catalog()["suites"]:
            raise unknown("suite", suite, catalog()["suites"], remedy="dare-eval ls suites")
        found += catalog()["suites"][suite]
    for name in found:
        if name not in known_benchmarks():
            raise unknown("benchmark", name, known_benchmarks(), remedy="dare-eval ls benchmarks")
    return list(dict.fromkeys(found))


def model_of(family: str, benchmark: str) -> str:
    """Return the model that stands for ``family`` in ``configs/eval`` on a benchmark."""
    about = catalog()["families"][family]
    by_likelihood = benchmark in catalog()["suites"]["likelihood"]
    return str(about.get("likelihood", about["model"]) if by_likelihood else about["model"])


@dataclass(frozen=True, slots=True)
class RunText:
    """The config of some models on some benchmarks, as text; ``changes`` are set in every model (dotted keys)."""

    models: Sequence[str]
    benchmarks: Sequence[str]
    work_dir: str
    configs: str = PACKAGED
    about: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "native"

    def __str__(self) -> str:
        """Return the text; raises ``UsageError`` for an unknown model or engine."""
        wrappers = [engine_wrapper(self.engine, base=_is_base(name)) for name in self.models]
        lines = [f'"""{self.about or self._about()}"""', "", "from mmengine.config import read_base", ""]
        imports = [f"from {one.partition(':')[0]} import {one.partition(':')[2]}" for one in wrappers if one]
        lines += [*dict.fromkeys(imports), ""] if imports else []
        lines += ["with read_base():", f"    from {self._place('eval._base.runtime')} import *"]
        lines += [line for name in self.benchmarks for line in self._import(name)]
        places = [self._place("models." + entry(name)["config"]) for name in self.models]
        several = len(places) > 1
        lines += [f"    from {place} import models{f' as m{i}' if several else ''}" for i, place in enumerate(places)]
        lines += ["", *([f"models = [{', '.join(f'*m{i}' for i in range(len(places)))}]"] if several else [])]
        for number in range(len(places)):
            if wrappers[number]:
                lines += [f'models[{number}]["type"] = {wrappers[number].partition(":")[2]}']
                lines += [f'models[{number}]["abbr"] += "-{self.engine}"']
            lines += [f"models[{number}]{_keys(key)} = {value!r}" for key, value in self.changes.items()]
        return "\n".join([*lines, *self._datasets(), f'work_dir = "{self.work_dir}"', ""])

    def _about(self) -> str:
        few = len(self.benchmarks) <= 3
        what = ", ".join(self.benchmarks) if few else f"{len(self.benchmarks)} benchmarks"
        return f"{', '.join(self.models)} on {what}."

    @property
    def _plain(self) -> bool:
        """Whether the imported list is the list of data sets as it is."""
        return len(self.benchmarks) == 1 and "suffix" not in known_benchmarks()[self.benchmarks[0]]

    def _import(self, name: str) -> list[str]:
        module, _, variable = str(known_benchmarks()[name]["config"]).partition(":")
        place = self._place(module.removeprefix("configs.")) if module.startswith("configs.") else module
        named = f"{variable} as {'datasets' if self._plain else name}"
        line = f"    from {place} import {named}"
        return [line] if len(line) <= 120 else [f"    from {place} import (", f"        {named},", "    )"]

    def _datasets(self) -> list[str]:
        if self._plain:
            return []
        suffixes = {name: known_benchmarks()[name].get("suffix") for name in self.benchmarks}
        renamed = '[dict(one, abbr=one["abbr"] + "{}") for one in {}]'
        listed = [renamed.format(suffix, name) if suffix else name for name, suffix in suffixes.items()]
        if len(listed) == 1:
            return [f"datasets = {listed[0]}"]
        return ["datasets = [", *[f"    *{part}," for part in listed], "]"]

    def _place(self, module: str) -> str:
        """Return a module of ``configs`` as the file imports it; a file in ``configs/eval`` is a neighbour of some."""
        if self.configs == PACKAGED:
            return f"{PACKAGED}.{module}"
        return f".{module.removeprefix('eval.')}" if module.startswith("eval.") else f"..{module}"


def engine_wrapper(engine: str, *, base: bool = False) -> str:
    """Return an engine's wrapper (``module:class``) for chat or base models, empty for the native one.

    Raises ``UsageError`` if the engine is unknown.
    """
    if engine not in catalog()["engines"]:
        raise unknown("engine", engine, catalog()["engines"])
    known = catalog()["engines"][engine]
    return str(known.get("base" if base else "wrapper", known.get("wrapper", "")))


def _is_base(model: str) -> bool:
    return str(entry(model)["wrapper"]).endswith("BaseModel")


def stock_text(family: str, benchmark: str, engine: str = "native") -> str:
    """Return the content of ``configs/eval/<family>_<benchmark>.py``, or of ``..._<engine>.py``."""
    model, suffix = model_of(family, benchmark), "" if engine == "native" else f"_{engine}"
    by = f" through {engine}" if suffix else ""
    about = f"{model} on {benchmark}{by}: {catalog()['benchmarks'][benchmark]['about']}."
    work_dir = f"runs/{family}_{benchmark}{suffix}"
    return str(RunText([model], [benchmark], work_dir, configs="..", about=about, engine=engine))


def _keys(dotted: str) -> str:
    return "".join(f'["{part}"]' for part in dotted.split("."))
