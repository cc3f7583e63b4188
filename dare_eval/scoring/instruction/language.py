"""Words, sentences and the language of a text, offline and deterministic.

Language detection is langdetect's with a fixed seed of its own detector object, so the same text always gets the same
answer and no global generator is touched.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_CHARS = 4000
"""Detection reads this many characters; more does not change its mind."""

_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|Inc|Ltd|Co|No|Fig|approx|a\.m|p\.m|U\.S|Ph\.D)\.$|(?<![A-Za-z])[A-Z]\.$"
)
_WIDE_ENDS = "\u3002\uff01\uff1f"
_END = re.compile(r"[.!?\u3002\uff01\uff1f]+[\"'\u201d\u2019)\]]*")


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters, digits and underscores."""
    return re.findall(r"\w+", text)


def sentences(text: str) -> list[str]:
    """Split a text at sentence ends; abbreviations, initials and decimals end none, a blank line always does."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        start = 0
        for end in _END.finditer(paragraph):
            after = paragraph[end.end() : end.end() + 1]
            inside_word = after and not after.isspace() and end[0][0] not in _WIDE_ENDS
            if inside_word or _ABBREVIATION.search(paragraph[max(start, end.end() - 12) : end.end()]):
                continue
            found.append(paragraph[start : end.end()].strip())
            start = end.end()
        found.append(paragraph[start:].strip())
    return [sentence for sentence in found if re.search(r"\w", sentence)]


@lru_cache(maxsize=2048)
def detect_language(text: str) -> str | None:
    """Return the ISO code of a text's language, or None when it has no features to tell by."""
    from langdetect import detector_factory
    from langdetect.lang_detect_exception import LangDetectException

    detector_factory.init_factory()
    detector = detector_factory._factory.create()
    detector.seed = 0
    detector.append(text[:MAX_CHARS])
    try:
        return str(detector.detect())
    except LangDetectException:
        return None
