"""Equivalent prompt templates of a benchmark: the same question in other words, behind one number.

Which decoding rule looks best depends on the wording of the prompt (arXiv 2606.29228), so a claim of equal quality
rests on several. Template 1 is the config's own prompt, byte for byte; the others come from ``templates.yaml``
(benchmarks whose configs are upstream's: rewritten in a copy of the config, its file stays as it is) or from the
styles of ``puzzles.prompts``. A template is part of the prompt, so it decides fingerprints and whether two results
may be compared. ``template = 2`` in a config, ``dare-eval run --template 2`` and ``dare-eval sweep --templates 3``
choose. Leaves out likelihood tasks: their options are not answers to a request.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

from dare_eval.errors import UsageError
from dare_eval.evaluators.benchmarks import benchmark_of, is_likelihood
from dare_eval.puzzles.prompts import EQUIVALENT_GROUPS

KEY = "template_name"
"""Where a rewritten ``infer_cfg`` says which template it holds."""


@functools.cache
def wordings() -> dict[str, dict[str, Any]]:
    """Return ``templates.yaml`` as read: per benchmark the pattern of a question and the further forms of it."""
    import yaml

    text = resources.files("dare_eval.datasets").joinpath("templates.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return loaded


def template_names(dataset_cfg: Mapping[str, Any]) -> list[str]:
    """Return the names of the templates a data set config has; the first is the config's own."""
    style = dataset_cfg.get("style")
    if style is not None:
        group = next((group for group in EQUIVALENT_GROUPS if style in group), (style,))
        return [style, *(name for name in group if name != style)]
    known = None if is_likelihood(dataset_cfg) else wordings().get(_benchmark(dataset_cfg))
    further = len(known["forms"]) if known else 0
    return [f"t{number}" for number in range(1, further + 2)]


def template_name(dataset_cfg: Mapping[str, Any]) -> str | None:
    """Return the name of the template in force; None for the only or the first one of a stock config."""
    name = dataset_cfg.get("style") or dataset_cfg.get("infer_cfg", {}).get(KEY)
    return None if name is None else str(name)


def with_template(dataset_cfg: Any, number: int) -> Any:
    """Return ``dataset_cfg`` worded by template ``number`` (from 1); itself for the first.

    Raises ``UsageError`` for a number the data set has not, and for a stock prompt whose wording is not the one that
    ``templates.yaml`` knows.
    """
    names = template_names(dataset_cfg)
    if not 1 <= number <= len(names):
        raise UsageError(
            f"data set '{dataset_cfg.get('abbr', dataset_cfg['type'])}' has no template {number}",
            seen=number,
            allowed=f"1 to {len(names)} ({', '.join(names)})",
            remedy="add a wording to dare_eval/datasets/templates.yaml" if len(names) == 1 else "",
        )
    if number == 1:
        return dataset_cfg
    worded = copy.deepcopy(dataset_cfg)
    if worded.get("style") is not None:
        worded["style"] = names[number - 1]
        return worded
    known = wordings()[_benchmark(dataset_cfg)]
    _reword(worded, re.compile(known["match"], re.DOTALL), known["forms"][number - 2])
    worded["infer_cfg"][KEY] = names[number - 1]
    return worded


def with_templates(dataset_cfgs: Iterable[Any], count: int) -> list[Any]:
    """Return every config in its first ``count`` templates, each under an abbr of its own (``gsm8k@t2``)."""
    found = []
    for dataset_cfg in dataset_cfgs:
        for number in range(1, count + 1):
            worded = copy.deepcopy(with_template(dataset_cfg, number))
            worded["abbr"] = f"{dataset_cfg['abbr']}@{template_names(dataset_cfg)[number - 1]}"
            found.append(worded)
    return found


def _benchmark(dataset_cfg: Mapping[str, Any]) -> str:
    found = benchmark_of(dataset_cfg)
    return found.name if found else ""


def _reword(dataset_cfg: Any, question: re.Pattern[str], form: str) -> None:
    """Rewrite every user turn of the templates of ``dataset_cfg`` in place."""
    for holder, key in _questions(dataset_cfg["infer_cfg"]):
        text, hits = question.subn(lambda match: _filled(form, match.groupdict()), holder[key])
        if not hits:
            raise UsageError(
                "this prompt is worded in another way than the templates know",
                seen=f"{dataset_cfg.get('abbr', dataset_cfg['type'])}: {holder[key][:80]!r}",
                allowed=question.pattern,
                remedy="use the data config of dare-eval ls benchmarks, or add its wording to templates.yaml",
            )
        holder[key] = text


def _questions(infer_cfg: Any) -> Iterator[tuple[Any, str]]:
    """Yield where the texts of the user stand: whole prompts, or the user turns of a dialogue."""
    for part in ("prompt_template", "ice_template"):
        holder = infer_cfg.get(part)
        if holder is None:
            continue
        if isinstance(holder["template"], str):
            yield holder, "template"
            continue
        yield from ((turn, "prompt") for turn in holder["template"]["round"] if turn["role"] == "HUMAN")


def _filled(form: str, groups: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: groups.get(match[1], match[0]), form)
