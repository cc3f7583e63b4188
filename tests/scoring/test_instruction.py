from __future__ import annotations

import json

import pytest

from dare_eval.scoring import UNPARSABLE_GOLD, score
from dare_eval.scoring.instruction.checks import CHECKS
from dare_eval.scoring.instruction.language import detect_language, sentences

ENGLISH = "this is a plain sentence in the english language about nothing at all"
EXAMPLES = {
    "keywords:existence": ({"keywords": ["river", "C++"]}, "A River, and C++.", "A river."),
    "keywords:frequency": ({"keyword": "ha", "frequency": 2, "relation": "at least"}, "ha HA", "ha"),
    "keywords:forbidden_words": ({"forbidden_words": ["very"]}, "every day", "Very nice"),
    "keywords:letter_frequency": (
        {"letter": "e", "let_frequency": 3, "let_relation": "less than"},
        "bee",
        "Eee",
    ),
    "language:response_language": (
        {"language": "de"},
        "Das ist ein kurzer Satz auf Deutsch, und noch einer dazu.",
        ENGLISH,
    ),
    "length_constraints:number_sentences": ({"num_sentences": 2, "relation": "at least"}, "One. Two!", "Only 3.5 one"),
    "length_constraints:number_paragraphs": ({"num_paragraphs": 2}, "a\n***\nb", "a\n\nb"),
    "length_constraints:number_words": ({"num_words": 3, "relation": "at least"}, "one two three", "one two"),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
        "First.\n\n'Then, second.",
        "Then first.\n\nSecond.",
    ),
    "detectable_content:number_placeholders": ({"num_placeholders": 2}, "[name] in [city]", "[name]"),
    "detectable_content:postscript": ({"postscript_marker": "P.S."}, "Bye.\nP. S. one more", "Bye, perhaps. PPS"),
    "detectable_format:number_bullet_lists": ({"num_bullets": 2}, "* a\n- b", "* a\n- b\n- c"),
    "detectable_format:constrained_response": ({}, "My answer is maybe.", "Maybe."),
    "detectable_format:number_highlighted_sections": ({"num_highlights": 2}, "*a* and *b*", "*a* and **"),
    "detectable_format:multiple_sections": (
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1 a SECTION 2 b",
        "SECTION one SECTION two",
    ),
    "detectable_format:json_format": ({}, '```json\n{"a": 1}\n```', "{a: 1}"),
    "detectable_format:title": ({}, "<<Rain>> fell", "<< >> fell"),
    "combination:two_responses": ({}, "one\n******\ntwo", "one\n******\none"),
    "combination:repeat_prompt": ({"prompt_to_repeat": "Say it."}, "say it. Yes.", "Yes. Say it."),
    "startend:end_checker": ({"end_phrase": "That is all."}, 'Well. "That is all."', "That is all. Bye"),
    "startend:quotation": ({}, '"quoted"', '"'),
    "change_case:capital_word_frequency": (
        {"capital_frequency": 2, "capital_relation": "less than"},
        "One LOUD word",
        "TWO LOUD words",
    ),
    "change_case:english_capital": ({}, ENGLISH.upper(), ENGLISH.title()),
    "change_case:english_lowercase": ({}, ENGLISH, ENGLISH.upper()),
    "punctuation:no_comma": ({}, "no comma", "a, b"),
}


def test_there_is_an_example_of_every_check():
    assert set(EXAMPLES) == set(CHECKS) and len(CHECKS) == 25


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_instruction_is_followed_and_broken(name):
    arguments, followed, broken = EXAMPLES[name]
    reference = {"instruction_id_list": [name], "kwargs": [arguments]}
    assert score("instruction", followed, reference).correct
    assert not score("instruction", broken, reference).correct
    assert not score("instruction", "", reference).correct


def test_a_prompt_is_right_when_all_its_instructions_are():
    reference = json.dumps(
        {
            "instruction_id_list": ["punctuation:no_comma", "detectable_format:title"],
            "kwargs": [{"keywords": None}, None],
        }
    )
    found = score("instruction", "no title here", reference)
    assert not found.correct and found.value == 0.0
    assert found.detail["strict"] == {"0:punctuation:no_comma": True, "1:detectable_format:title": False}
    assert score("instruction", "<<Yes>> indeed", reference).correct


def test_the_loose_verdict_forgives_a_first_line_and_asterisks():
    reference = {"instruction_id_list": ["startend:quotation"], "kwargs": [{}]}
    found = score("instruction", 'Sure, here it is:\n**"quoted"**', reference)
    assert not found.correct and found.detail["loose_correct"]


@pytest.mark.parametrize(
    "reference",
    [
        {"instruction_id_list": ["punctuation:no_coma"], "kwargs": [{}]},
        {"instruction_id_list": ["length_constraints:number_words"], "kwargs": [{"num_words": 3}]},
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": []},
        {"instruction_id_list": [], "kwargs": []},
    ],
)
def test_a_reference_that_cannot_be_checked_is_counted_apart(reference):
    assert score("instruction", "text", reference).rule == UNPARSABLE_GOLD


def test_sentences_end_where_people_end_them():
    text = 'Dr. Smith paid 3.50 dollars! "Really?" he asked. Yes\n\nA new paragraph'
    assert len(sentences(text)) == 5
    assert len(sentences("\u4eca\u5929\u4e0b\u96e8\u3002\u660e\u5929\u6674\u3002")) == 2


def test_language_detection_is_stable():
    assert {detect_language.__wrapped__("Bonjour tout le monde, il pleut aujourd'hui") for _ in range(5)} == {"fr"}
    assert detect_language("123 456") is None
