"""The 25 verifiable instructions, one small function each: ``test(reply, **arguments) -> bool``.

Names and arguments are those of the IFEval rows. A function sees a non-empty reply and decides by counting and
matching; keywords are literal text, never patterns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from dare_eval.scoring.instruction.language import detect_language, sentences, words


class Check(NamedTuple):
    """An instruction: its test and the arguments that the test needs."""

    test: Callable[..., bool]
    arguments: tuple[str, ...]


CONSTRAINED = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def holds(count: int, relation: str, threshold: Any) -> bool:
    """Compare a count by one of the two relations of the data, ``less than`` and ``at least``."""
    return count < int(threshold) if relation == "less than" else count >= int(threshold)


def _occurrences(keyword: str, reply: str) -> int:
    return len(re.findall(re.escape(str(keyword)), reply, re.IGNORECASE))


def keywords_exist(reply: str, keywords: list[str]) -> bool:
    """Every keyword occurs."""
    return all(_occurrences(keyword, reply) for keyword in keywords)


def keyword_frequency(reply: str, keyword: str, frequency: int, relation: str) -> bool:
    """A keyword occurs often enough, or rarely enough."""
    return holds(_occurrences(keyword, reply), relation, frequency)


def forbidden_words(reply: str, forbidden_words: list[str]) -> bool:
    """No forbidden word occurs as a whole word."""
    return not any(re.search(rf"\b{re.escape(word)}\b", reply, re.IGNORECASE) for word in forbidden_words)


def letter_frequency(reply: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    """A letter occurs often enough, or rarely enough, whatever its case."""
    return holds(reply.lower().count(str(letter).lower()), let_relation, let_frequency)


def response_language(reply: str, language: str) -> bool:
    """The reply is in the language; a reply too short to tell counts as followed, as in the reference."""
    return detect_language(reply) in (language, None)


def number_sentences(reply: str, num_sentences: int, relation: str) -> bool:
    """The reply has enough, or few enough, sentences."""
    return holds(len(sentences(reply)), relation, num_sentences)


def number_words(reply: str, num_words: int, relation: str) -> bool:
    """The reply has enough, or few enough, words."""
    return holds(len(words(reply)), relation, num_words)


def number_paragraphs(reply: str, num_paragraphs: int) -> bool:
    """Paragraphs separated by ``***``, none of them empty, are as many as asked."""
    parts = re.split(r"\s?\*\*\*\s?", reply)
    if not parts[0].strip():
        parts = parts[1:]
    if parts and not parts[-1].strip():
        parts = parts[:-1]
    return all(part.strip() for part in parts) and len(parts) == int(num_paragraphs)


def nth_paragraph_first_word(reply: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Paragraphs separated by blank lines are as many as asked, and the n-th starts with the word."""
    parts = reply.split("\n\n")
    filled = [part.strip() for part in parts if part.strip()]
    nth = int(nth_paragraph)
    if len(filled) != int(num_paragraphs) or not 1 <= nth <= len(parts) or not parts[nth - 1].strip():
        return False
    start = re.match(r"['\"]*([^\s.,?!'\"]*)", parts[nth - 1].strip())
    return start is not None and start[1].lower() == str(first_word).lower()


def number_placeholders(reply: str, num_placeholders: int) -> bool:
    """At least so many placeholders in square brackets."""
    return len(re.findall(r"\[[^\[\]\n]*\]", reply)) >= int(num_placeholders)


def postscript(reply: str, postscript_marker: str) -> bool:
    """A postscript with the marker, whose letters may stand apart."""
    marker = str(postscript_marker)
    if marker not in ("P.S.", "P.P.S"):
        return marker.lower() in reply.lower()
    spelt = r"\.\s?".join(marker.rstrip(".").split(".")) + (r"\." if marker.endswith(".") else "")
    return re.search(spelt, reply, re.IGNORECASE) is not None


def number_bullets(reply: str, num_bullets: int) -> bool:
    """Exactly so many lines that begin with ``*`` or ``-``."""
    return len(re.findall(r"^[ \t]*(?:\*(?!\*)|-).*$", reply, re.MULTILINE)) == int(num_bullets)


def constrained_response(reply: str) -> bool:
    """One of the three allowed answers occurs."""
    return any(answer in reply for answer in CONSTRAINED)


def number_highlights(reply: str, num_highlights: int) -> bool:
    """At least so many stretches between asterisks."""
    marked = re.findall(r"\*[^\n*]*\*", reply) + re.findall(r"\*\*[^\n*]*\*\*", reply)
    return sum(bool(stretch.strip("*").strip()) for stretch in marked) >= int(num_highlights)


def multiple_sections(reply: str, section_spliter: str, num_sections: int) -> bool:
    """At least so many numbered section heads."""
    return len(re.findall(rf"{re.escape(str(section_spliter))}\s?\d+", reply)) >= int(num_sections)


def json_format(reply: str) -> bool:
    """The whole reply is JSON, alone or in one code fence."""
    bare = re.sub(r"^```(?:json)?\s*|\s*```$", "", reply.strip(), flags=re.IGNORECASE)
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return True


def title(reply: str) -> bool:
    """A title in double angle brackets."""
    return any(found.strip() for found in re.findall(r"<<([^\n<>]+)>>", reply))


def two_responses(reply: str) -> bool:
    """Two different replies separated by six asterisks."""
    parts = [part.strip() for part in reply.split("******")]
    parts = [part for index, part in enumerate(parts) if part or 0 < index < len(parts) - 1]
    return len(parts) == 2 and all(parts) and parts[0] != parts[1]


def repeat_prompt(reply: str, prompt_to_repeat: str) -> bool:
    """The reply begins with the prompt."""
    return reply.strip().lower().startswith(str(prompt_to_repeat).strip().lower())


def end_phrase(reply: str, end_phrase: str) -> bool:
    """The reply ends with the phrase."""
    return reply.strip().strip('"').lower().endswith(str(end_phrase).strip().lower())


def quotation(reply: str) -> bool:
    """The whole reply stands in double quotation marks."""
    bare = reply.strip()
    return len(bare) > 1 and bare[0] == bare[-1] == '"'


def capital_words(reply: str, capital_frequency: int, capital_relation: str) -> bool:
    """Words in capital letters are enough, or few enough."""
    return holds(sum(word.isupper() for word in words(reply)), capital_relation, capital_frequency)


def english_capital(reply: str) -> bool:
    """English, all in capital letters."""
    return reply.isupper() and detect_language(reply) in ("en", None)


def english_lowercase(reply: str) -> bool:
    """English, all in lower case."""
    return reply.islower() and detect_language(reply) in ("en", None)


def no_comma(reply: str) -> bool:
    """No comma anywhere."""
    return "," not in reply


CHECKS: dict[str, Check] = {
    "keywords:existence": Check(keywords_exist, ("keywords",)),
    "keywords:frequency": Check(keyword_frequency, ("keyword", "frequency", "relation")),
    "keywords:forbidden_words": Check(forbidden_words, ("forbidden_words",)),
    "keywords:letter_frequency": Check(letter_frequency, ("letter", "let_frequency", "let_relation")),
    "language:response_language": Check(response_language, ("language",)),
    "length_constraints:number_sentences": Check(number_sentences, ("num_sentences", "relation")),
    "length_constraints:number_paragraphs": Check(number_paragraphs, ("num_paragraphs",)),
    "length_constraints:number_words": Check(number_words, ("num_words", "relation")),
    "length_constraints:nth_paragraph_first_word": Check(
        nth_paragraph_first_word, ("num_paragraphs", "nth_paragraph", "first_word")
    ),
    "detectable_content:number_placeholders": Check(number_placeholders, ("num_placeholders",)),
    "detectable_content:postscript": Check(postscript, ("postscript_marker",)),
    "detectable_format:number_bullet_lists": Check(number_bullets, ("num_bullets",)),
    "detectable_format:constrained_response": Check(constrained_response, ()),
    "detectable_format:number_highlighted_sections": Check(number_highlights, ("num_highlights",)),
    "detectable_format:multiple_sections": Check(multiple_sections, ("section_spliter", "num_sections")),
    "detectable_format:json_format": Check(json_format, ()),
    "detectable_format:title": Check(title, ()),
    "combination:two_responses": Check(two_responses, ()),
    "combination:repeat_prompt": Check(repeat_prompt, ("prompt_to_repeat",)),
    "startend:end_checker": Check(end_phrase, ("end_phrase",)),
    "startend:quotation": Check(quotation, ()),
    "change_case:capital_word_frequency": Check(capital_words, ("capital_frequency", "capital_relation")),
    "change_case:english_capital": Check(english_capital, ()),
    "change_case:english_lowercase": Check(english_lowercase, ()),
    "punctuation:no_comma": Check(no_comma, ()),
}
