from __future__ import annotations

import copy
import pickle

import pytest

from dare_eval.errors import DataError
from dare_eval.inferencers.rows import make_rows
from dare_eval.models.texts import GenText, cut_at_stops, last_question, messages, render_chat, row_seed, row_seeds

TURNS = [
    {"role": "SYSTEM", "prompt": ""},
    {"role": "HUMAN", "prompt": "2 + 2?"},
    {"role": "BOT", "prompt": "4"},
    {"role": "HUMAN", "prompt": "3 + 3?"},
]


def test_gentext_is_a_text_that_keeps_its_stats():
    made = GenText("hello", {"nfe": 3})
    assert made == "hello"
    assert isinstance(made, str)
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (again, again.stats) == ("hello", {"nfe": 3})


def test_turns_become_chat_messages():
    assert messages(TURNS) == [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "3 + 3?"},
    ]
    assert messages("plain") == [{"role": "user", "content": "plain"}]
    assert messages([{"role": "user", "content": "api form"}]) == [{"role": "user", "content": "api form"}]
    assert last_question(TURNS) == "3 + 3?"
    assert last_question([{"role": "BOT", "prompt": "x"}]) == ""


class Tokenizer:
    chat_template = "x"

    def apply_chat_template(self, turns, *, tokenize, add_generation_prompt, continue_final_message):
        text = "|".join(turn["content"] for turn in turns)
        return text + ("|>" if add_generation_prompt else "") + ("~" if continue_final_message else "")


def test_an_open_reply_is_continued():
    assert render_chat(Tokenizer(), TURNS) == "2 + 2?|4|3 + 3?|>"
    assert render_chat(Tokenizer(), TURNS, "<reasoning>") == "2 + 2?|4|3 + 3?|><reasoning>"
    assert render_chat(Tokenizer(), TURNS[:3]) == "2 + 2?|4~"


def test_a_tokenizer_without_template_is_named():
    bare = Tokenizer()
    bare.chat_template = None
    with pytest.raises(DataError, match="BaseModel"):
        render_chat(bare, TURNS)


@pytest.mark.parametrize(
    ("text", "stops", "cut"),
    [
        ("a Question: b", ["Question:"], ("a ", True)),
        ("a\n\nb</s>", ["</s>", "\n\n"], ("a", True)),
        ("abc", ["x", ""], ("abc", False)),
        ("abc", [], ("abc", False)),
    ],
)
def test_stop_texts(text, stops, cut):
    assert cut_at_stops(text, stops) == cut


def test_row_seeds_differ_by_seed_and_item_and_fit_a_generator():
    seeds = {row_seed(seed, item) for seed in range(3) for item in ("a", "b")}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert row_seed(1, "a") == row_seed(1, "a")


def test_rows_are_seeded_by_item_and_by_prompt_where_no_item_is_named():
    rows = make_rows([{"question": "a"}, {"question": "b"}], "letters")
    assert row_seeds(1, rows, ["x", "x"]) == [row_seed(1, row.item_id) for row in rows]
    assert row_seeds(1, None, ["x", "y"]) == [row_seed(1, "x"), row_seed(1, "y")]
