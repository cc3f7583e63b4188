"""Values of ``key=value`` options are numbers in every usual notation, and what a text looks like otherwise."""

from __future__ import annotations

import string

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given

from dare_eval.errors import UsageError
from dare_eval.values import dump_yaml, load_yaml, read_value, read_values, split_values
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-1", 0.1),
        ("1E5", 1e5),
        ("-2.5e+3", -2500.0),
        (".5e1", 5.0),
        ("1.", 1.0),
        (".25", 0.25),
        ("1_000", 1000),
        ("010", 10),
        ("0x1F", 31),
        ("+7", 7),
        ("[1e-1, 1]", [0.1, 1]),
        (".inf", float("inf")),
        ("null", None),
        ("", None),
        ("none", "none"),
        ("true", True),
        ("'1e-1'", "1e-1"),
        ("1:30", "1:30"),
        ("1e", "1e"),
        ("123e4567", "123e4567"),
        ("-.inf", float("-inf")),
        ("0.6.0", "0.6.0"),
        ("http://127.0.0.1:30000", "http://127.0.0.1:30000"),
    ],
)
def test_values(text, value):
    found = read_value("key", text)
    assert found == value and type(found) is type(value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_every_number_that_python_writes_comes_back(number):
    found = read_value("key", str(number))
    assert found == number and type(found) is type(number)


@given(
    st.text(string.printable, max_size=6)
    | st.sampled_from(["1e5", "010", "1_0", "1:30", "0b11", "1__0", "123e4567", "yes", "null", ".5", "1.", "0x1"])
)
def test_a_text_that_looks_like_a_number_is_written_so_that_it_stays_a_text(text):
    assert load_yaml(dump_yaml({"name": text, "list": [text, 1e-5]})) == {"name": text, "list": [text, 1e-5]}


@pytest.mark.parametrize("text", ["0b11", "12:30", "1__0", "010", "1e5", "0o7"])
def test_a_text_stays_a_text_for_older_readers_too(text):
    assert yaml.safe_load(dump_yaml([text, 1.5, 7])) == [text, 1.5, 7]


@pytest.mark.parametrize("path", sorted((ROOT / "configs").rglob("*.yaml")), ids=lambda path: path.name)
def test_the_committed_recipes_mean_the_same_to_every_reader(path):
    assert load_yaml(path.read_text()) == yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    "text",
    ["[1", "a: b: c", "2024-99-99", "9" * 5000, "!!python/name:os.system", "!!bool x", "!!float ''", "!!timestamp x"],
)
def test_what_cannot_be_read_is_named(text):
    with pytest.raises(UsageError, match="the value of 'seed' cannot be read"):
        read_value("seed", text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1,2", ["1", "2"]),
        ("[1, 2],[3]", ["[1, 2]", "[3]"]),
        ("{a: [1, 2], b: 3}, 4", ["{a: [1, 2], b: 3}", "4"]),
        ("'a,b', c", ["'a,b'", "c"]),
        ('["x]", 1], 2', ['["x]", 1]', "2"]),
        ("it's,1", ["it's", "1"]),
        (" ,", ["", ""]),
    ],
)
def test_commas_inside_brackets_and_quotes_separate_nothing(text, parts):
    assert split_values(text) == parts


def test_several_values():
    assert read_values("key", "1e0, [a, 2], ,none") == [1.0, ["a", 2], "none"]
