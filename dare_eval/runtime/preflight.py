"""Checks a whole config before anything runs: every dotted path imports, every model and data set can be used.

``dare-eval run`` calls it. Plain ``opencompass`` finds the same faults when it plans: wrong settings refuse the run,
of everything else it goes on with what works.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

from opencompass.utils import dataset_abbr_from_cfg, model_abbr_from_cfg

from dare_eval.datasets.templates import with_template
from dare_eval.errors import DareError, DataError, SetupError, UsageError
from dare_eval.runtime.built import build
from dare_eval.runtime.data_paths import share_data_root
from dare_eval.runtime.dotted import dotted_types, resolve
from dare_eval.runtime.plan import check_combinations, plan_pair

PARTS = ("models", "datasets", "infer", "eval", "summarizer")


def check_config(cfg: Any) -> None:
    """Raise the first kind of error that ``cfg`` has (usage, then environment, then data), listing every fault."""
    share_data_root()
    for key in ("models", "datasets"):
        if not cfg.get(key):
            raise UsageError(f"the config names no {key}", seen=sorted(cfg.keys()), remedy=f"define {key} = [...]")
    check_combinations(_combinations(cfg))
    errors = list(_errors(cfg))
    for kind in (UsageError, SetupError, DataError, DareError):
        found = [error for error in errors if isinstance(error, kind)]
        if found:
            raise joined(kind, [*found, *(error for error in errors if error not in found)])


def _errors(cfg: Any) -> Iterator[DareError]:
    for path in sorted(set().union(*(dotted_types(cfg.get(part)) for part in PARTS))):
        yield from _error_of(lambda path=path: resolve("class", path))
    for combination in _combinations(cfg):
        for dataset_cfg in combination["datasets"]:
            name = dataset_abbr_from_cfg(dataset_cfg)
            with contextlib.redirect_stderr(io.StringIO()):  # progress bars of upstream's loaders
                broken = list(_error_of(lambda one=dataset_cfg: build(one), f"data set '{name}': "))
            if cfg.get("template") is not None:
                yield from _error_of(lambda one=dataset_cfg: with_template(one, cfg["template"]))
            yield from broken
            for model_cfg in combination["models"] if not broken else ():
                about = f"model '{model_abbr_from_cfg(model_cfg)}': "
                yield from _error_of(lambda one=model_cfg, on=dataset_cfg: plan_pair(one, on), about)


def _combinations(cfg: Any) -> list[Any]:
    """Return which models meet which data sets: all with all, unless the config says otherwise."""
    combined: list[Any] = cfg.get("model_dataset_combinations") or []
    return combined or [{"models": cfg["models"], "datasets": cfg["datasets"]}]


def _error_of(action: Any, about: str = "") -> Iterator[DareError]:
    try:
        action()
    except DareError as error:
        yield type(error)(about + error.what, seen=error.seen, allowed=error.allowed, remedy=error.remedy)


def joined(kind: type[DareError], errors: Sequence[DareError]) -> DareError:
    """Return the one error of ``errors``, or one of ``kind`` that lists them all, each with its remedy."""
    unlike = {error.what: error for error in errors}
    if len(unlike) == 1:
        return next(iter(unlike.values()))
    listed = "\n".join(_as_entry(error) for error in unlike.values())
    return kind(f"{len(unlike)} things of this config cannot work", seen=listed, remedy="repair each of them")


def _as_entry(error: DareError) -> str:
    seen = f" ({error.seen})" if error.seen is not None else ""
    allowed = f"; allowed: {error.allowed}" if error.allowed else ""
    remedy = f"; remedy: {error.remedy}" if error.remedy else ""
    return f"- {error.what}{seen}{allowed}{remedy}"
