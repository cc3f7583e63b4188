"""Overlap between a training text set and benchmark items: exact, normalised, and by shared 13-grams.

Three tests of growing looseness, each reported apart: the same text; the same text after lower-casing and dropping
everything but letters and digits; a shared run of 13 words (the length used by the GPT-3 report's contamination study).
Texts shorter than the run are compared by the first two tests only. Leaves out paraphrases and translations: a
clean report does not prove that an item was never seen. Run with ``dare-eval data overlap TRAIN BENCH``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

NGRAM = 13
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Match:
    """One benchmark item that a training text repeats; ``test`` is ``exact``, ``normalised`` or ``ngram``."""

    bench_index: int
    train_index: int
    test: str


@dataclass(frozen=True, slots=True)
class OverlapReport:
    """Strictest match of each touched benchmark item, and the sizes of both sides."""

    matches: tuple[Match, ...]
    bench_items: int
    train_texts: int

    def count(self, test: str) -> int:
        """Return how many benchmark items have ``test`` as their strictest match."""
        return sum(match.test == test for match in self.matches)

    @property
    def clean_indices(self) -> list[int]:
        """Indices of the benchmark items that no test touches."""
        touched = {match.bench_index for match in self.matches}
        return [index for index in range(self.bench_items) if index not in touched]


def normalise(text: str) -> str:
    """Return the words of ``text`` in lower case, joined by single spaces."""
    return " ".join(_WORD.findall(text.lower()))


def ngrams(text: str, size: int = NGRAM) -> Iterator[tuple[str, ...]]:
    """Yield each run of ``size`` words of the normalised text."""
    words = normalise(text).split()
    return (tuple(words[i : i + size]) for i in range(len(words) - size + 1))


def overlap(train: Iterable[str], bench: Sequence[str], size: int = NGRAM) -> OverlapReport:
    """Compare every training text with every benchmark text; ``train`` is read once and may be a stream.

    Memory grows with the benchmark, not with the training set. An item gets its strictest match, the first
    training text that shows it.
    """
    index = _Index(bench, size)
    best: dict[int, Match] = {}
    seen = 0
    for train_index, text in enumerate(train):
        seen += 1
        for bench_index, test in index.lookup(text):
            held = best.get(bench_index)
            if held is None or _RANK[test] < _RANK[held.test]:
                best[bench_index] = Match(bench_index, train_index, test)
    return OverlapReport(tuple(best[key] for key in sorted(best)), len(bench), seen)


_RANK = {"exact": 0, "normalised": 1, "ngram": 2}


class _Index:
    """Benchmark texts by their exact form, normalised form and 13-grams."""

    def __init__(self, bench: Sequence[str], size: int) -> None:
        self.size = size
        self.exact: dict[str, list[int]] = {}
        self.normalised: dict[str, list[int]] = {}
        self.ngram: dict[tuple[str, ...], list[int]] = {}
        for position, text in enumerate(bench):
            self.exact.setdefault(text, []).append(position)
            self.normalised.setdefault(normalise(text), []).append(position)
            for run in set(ngrams(text, size)):
                self.ngram.setdefault(run, []).append(position)

    def lookup(self, text: str) -> Iterator[tuple[int, str]]:
        for position in self.exact.get(text, ()):
            yield position, "exact"
        plain = normalise(text)
        for position in self.normalised.get(plain, ()) if plain else ():
            yield position, "normalised"
        for run in set(ngrams(text, self.size)):
            for position in self.ngram.get(run, ()):
                yield position, "ngram"
