"""Items for reading, and pictures of how they were denoised."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.data import items as reading
from leaderboard.data.items import CHANGES, VERDICTS, changes, find_items, load_items, verdict, word_changes
from leaderboard.data.stability import measure
from leaderboard.data.tokens import piece_of
from leaderboard.data.trajectory import (
    EDITED,
    KNOWN,
    MASK,
    MASKED,
    NEW,
    contrast,
    pieces_at,
    states,
    thinned,
    trajectory,
)
from tests.leaderboard.stores import items, write_run


def test_items_are_found_by_verdict_and_text_page_by_page(monkeypatch):
    monkeypatch.setattr(reading, "PAGE_ITEMS", 3)
    records = items([True, False] * 5)
    assert find_items(records, show="right").total == 5 and find_items(records, show="wrong").pages == 2
    pages = [record for page in (1, 2, 3, 4) for record in find_items(records, page=page).records]
    assert pages == records and find_items(records, page=99).page == 4
    assert [record.index for record in find_items(records, text="QUESTION 7?").records] == [7]
    odd = [
        dataclasses.replace(records[0], extracted=None), dataclasses.replace(records[1], correct=None),
        dataclasses.replace(records[2], stop="length"), dataclasses.replace(records[3], error="boom", correct=None),
    ]  # fmt: skip
    assert [find_items(odd, show=kind).total for kind in VERDICTS] == [4, 2, 0, 1, 2, 1]
    assert [verdict(record) for record in odd] == ["right", "not scored", "right", "failed"]


def test_changes_between_two_runs_are_the_flips():
    a, b = items([True, True, False, False]), items([True, False, True, False])
    found = {kind: [x.index for x, _ in changes(a, b, kind)] for kind in CHANGES}
    assert found == {
        "all changes": [1, 2], "second right only": [2], "first right only": [1], "both right": [0], "both wrong": [3]
    }  # fmt: skip


@given(st.text(max_size=60), st.text(max_size=60))
def test_word_changes_hold_both_texts_whole(a, b):
    parts = word_changes(a, b)
    assert "".join(left for _, left, _ in parts) == a and "".join(right for _, _, right in parts) == b
    assert all(left == right for how, left, right in parts if how == "equal")


def test_word_changes_of_very_long_texts_are_not_searched():
    assert (
        word_changes("a " * 5000, "b " * 5000)[0][0] == "changed" and len(word_changes("a " * 5000, "a " * 5000)) == 1
    )


def test_unreadable_items_say_why(tmp_path):
    found = load_items(str(tmp_path), "", "model", "toy")
    assert found.records == () and "no results in this folder" in found.trouble
    folder = write_run(tmp_path, "a", {"toy": items([True])})
    (folder / "records" / "model" / "toy.jsonl").write_text("{")
    assert [problem.kind for problem in load_items(str(folder), "", "model", "toy").problems] == ["half line"]


@given(st.lists(st.integers(-1, 9), min_size=1, max_size=30))
def test_every_position_is_masked_until_its_forward_and_new_in_it(steps):
    [item] = items([True], step_map=tuple(steps), nfe=10)
    found = trajectory(item)
    state_SG = states(found)
    assert state_SG.shape == (10, len(steps))
    for position, step in enumerate(steps):
        column = state_SG[:, position]
        if step < 0:
            assert (column == MASKED).all()
            continue
        assert (column[:step] == MASKED).all() and column[step] == NEW and (column[step + 1 :] == KNOWN).all()


def test_edits_are_marked_and_strange_ones_left_out():
    [item] = items([True], step_map=(0, 1), nfe=3, edits=[[2, 0, 5, 6], "odd", [1], [99, 0, 1, 2], {"step": 1}])
    assert states(trajectory(item))[2].tolist() == [EDITED, KNOWN]
    [plain] = items([True], nfe=None)
    assert trajectory(plain) is None


@given(st.integers(1, 900), st.integers(1, 900))
def test_large_pictures_are_thinned_and_lose_no_event(rows, columns):
    state_SG = np.zeros((rows, columns), dtype=np.int8)
    state_SG[rows - 1, columns - 1] = NEW
    picture, high, wide = thinned(state_SG)
    assert max(picture.shape) <= 400 and picture[-1, -1] == NEW
    assert picture.shape[0] * high >= rows and picture.shape[1] * wide >= columns


def test_the_text_at_a_forward_shows_masks_for_what_is_not_there_yet():
    [item] = items([True], step_map=tuple(range(12)), nfe=12)
    found = trajectory(item)
    half = pieces_at(found, 4, None)
    assert "".join(text for text, _ in half[:5]) == "w0 w1 w2 w3 w4 " and half[5] == (MASK, -1)
    whole = pieces_at(found, 11, lambda token: f"<{token}>")
    assert whole[9] == ("<9>", 9) and whole[10][0] == "\u23ce" and len(whole) == 11
    [odd] = items([True], response="two words", step_map=(0, 1), nfe=2)
    assert pieces_at(trajectory(odd), 1, None)[1][0] == "1 ", "token numbers where words do not stand for tokens"


def test_contrast_prefers_one_question_answered_both_ways():
    a, b = items([True, True]), items([True, False])
    assert [one.index for one in contrast(a, b)] == [1, 1] and contrast(a, b)[0].correct
    assert [one.correct for one in contrast(items([False, True]), items([False, True]))] == [True, False]
    assert contrast(items([True]), items([True]))[1] is None


def test_token_texts_come_from_the_shipped_tokenizer_and_from_byte_level_vocabularies(tmp_path):
    import json

    manifest = {"version": 1, "run_id": "r", "kind": "evaluation"}
    shipped = piece_of(manifest | {"models": [{"name": "m", "model_id": "tiny-sudoku"}]}, "m")
    assert shipped(1) == "<mask> " and shipped(10**6) == "<1000000> "
    vocabulary = {"\u0120hello": 0, "\u00c3\u00a9": 1, "\u2581wide": 2}
    record = {"model": {"type": "BPE", "vocab": vocabulary}, "added_tokens": [{"id": 3, "content": "<|mask|>"}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(record))
    piece = piece_of(manifest | {"models": [{"name": "m", "model_id": str(tmp_path)}]}, "m")
    assert [piece(token) for token in range(4)] == [" hello", "\u00e9", " wide", "<|mask|>"]
    assert piece_of(manifest | {"models": [{"name": "m", "model_id": "nowhere"}]}, "m") is None
    assert piece_of(None, "m") is None


def test_stability_shows_kept_figures_else_what_step_maps_tell(tmp_path):
    from dare_eval.report.stability import Answer, stability
    from dare_eval.report.stability_file import write_stability

    records = items([True, False] * 6)
    folder = write_run(tmp_path, "a", {"toy": records})
    bare = measure(str(folder), "s", "model", "toy")
    assert [row[0] for row in bare.rows] == ["Left-to-rightness (1: strictly left to right)"]
    assert any("not worked out yet" in note for note in bare.notes)
    by_text = {record.response: record for record in records}

    def judge(text, record):
        return Answer(record.extracted, bool(record.correct)) if text in by_text else Answer(None, False)

    write_stability(folder, [stability("model", "toy", records, lambda tokens: " ".join(map(str, tokens)), judge)])
    full = measure(str(folder), "s", "model", "toy")
    assert len(full.rows) == 6 and not any("not worked out" in note for note in full.notes)
    (folder / "stability.json").write_text("{")
    assert any("not readable" in note for note in measure(str(folder), "s", "model", "toy").notes)
    silent = write_run(tmp_path, "b", {"toy": items([True], nfe=None)})
    assert measure(str(silent), "s", "model", "toy").trouble == "no item of this result has a step map"
