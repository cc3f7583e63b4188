"""The prompts of one multiple-choice item, one per label, made by upstream's retriever and templates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Fits = Callable[[Sequence[Any]], bool]


class LabelPrompts:
    """Makes the prompts of an item when they are asked for.

    ``labels`` are the inferencer's, else the keys of the template, else the values of the output column, sorted
    (upstream takes them from a set, whose order differs from process to process).
    """

    def __init__(self, retriever: Any, ice_template: Any, prompt_template: Any, labels: Sequence[Any] | None) -> None:
        self.retriever = retriever
        self.templates = {"ice_template": ice_template, "prompt_template": prompt_template}
        self.examples: list[list[int]] = [list(chosen) for chosen in retriever.retrieve()]
        self.labels = list(labels) if labels is not None else self._labels()

    def of(self, index: int, fits: Fits) -> tuple[list[Any], int]:
        """Return one prompt per label, and how many few-shot examples were dropped from the end so that they fit.

        Without any example left the prompts are returned whether they fit or not.
        """
        chosen = self.examples[index]
        for kept in range(len(chosen), -1, -1):
            prompts = self._with(index, chosen[:kept])
            if not kept or fits(prompts):
                break
        return prompts, len(chosen) - kept

    def bare(self, index: int) -> list[Any]:
        """Return one prompt per label without any example: the shortest that :meth:`of` can come to."""
        return self._with(index, [])

    def _with(self, index: int, examples: list[int]) -> list[Any]:
        ice = self.retriever.generate_ice(examples, ice_template=self.templates["ice_template"])
        return [self.retriever.generate_label_prompt(index, ice, label, **self.templates) for label in self.labels]

    def _labels(self) -> list[Any]:
        found = list(self.retriever.get_labels(**self.templates))
        keys = [list(t.template) for t in self.templates.values() if t is not None and isinstance(t.template, dict)]
        return found if found in keys else sorted(found, key=str)
