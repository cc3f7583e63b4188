"""HTML made from data: whatever the texts are, a browser reads them as texts."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from dare_eval.records.safe import visible
from leaderboard.markup import Markup, el, joined, table, text
from tests.leaderboard.stores import HOSTILE


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))

    def handle_data(self, data):
        self.texts.append(data)


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    reader.close()
    return reader


@given(st.text(), st.text())
def test_texts_and_attributes_come_back_as_they_were_given(inside, value):
    found = read(el("p", inside, title=value))
    assert [tag for tag, _ in found.tags] == ["p"] and "".join(found.texts) == visible(inside)
    assert found.tags[0][1] == [("title", visible(value))]


def test_markup_is_kept_and_only_markup():
    assert el("p", el("b", "<"), " & ", 3, None) == "<p><b>&lt;</b> &amp; 3</p>"
    assert joined(["a", Markup("<br>")], " < ") == "a &lt; <br>"
    assert el("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert el("td", "", rowspan=0, hidden=True, title=None, class_="x", data_label="y") == (
        '<td rowspan="0" hidden class="x" data-label="y"></td>'
    )


def test_tables_hold_hostile_texts_as_texts():
    found = read(table([HOSTILE, "n"], [(HOSTILE, 1)], numbers=(1,), label=HOSTILE))
    assert {tag for tag, _ in found.tags} == {"div", "table", "thead", "tr", "th", "tbody", "td"}
    assert "<script>" in "".join(found.texts) and "\x07" not in text(HOSTILE)
