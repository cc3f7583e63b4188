from __future__ import annotations

import json

import pytest

from dare_eval.errors import DataError, UsageError

pytestmark = pytest.mark.xdist_group("opencompass")


@pytest.fixture(scope="module")
def kinds():
    from dare_eval.datasets.countdown import CountdownDataset
    from dare_eval.datasets.sudoku import SudokuDataset

    return {"sudoku": SudokuDataset, "countdown": CountdownDataset}


@pytest.mark.parametrize("name", ["sudoku", "countdown"])
def test_generated_sets_depend_on_the_seed_only(kinds, name):
    load = kinds[name].load
    first = load(size=20, seed=1).to_list()
    assert first == load(size=20, seed=1).to_list()
    assert first != load(size=20, seed=2).to_list()
    assert len({row["id"] for row in first}) == 20


@pytest.mark.parametrize("name", ["sudoku", "countdown"])
def test_styles_change_the_prompt_and_nothing_else(kinds, name):
    load = kinds[name].load
    plain, tiny = load(size=5, style="plain").to_list(), load(size=5, style="tiny").to_list()
    for one, other in zip(plain, tiny, strict=True):
        assert one["prompt"] != other["prompt"]
        assert one["reference"] == other["reference"]
        assert all(one[key] == other[key] for key in kinds[name].identity)
    assert load(size=5, style="d1_eval")[0]["reply_prefix"] == "<reasoning>"
    with pytest.raises(UsageError, match="plain"):
        load(size=5, style="plane")


def test_references_solve_their_items(kinds):
    from dare_eval.scoring import score

    for row in kinds["sudoku"].load(size=10):
        assert score("sudoku", row["solution"], row["reference"]).correct
        assert not score("sudoku", row["puzzle"], row["reference"]).correct


def test_a_prompt_from_a_file(kinds, tmp_path):
    (tmp_path / "style.txt").write_text("system\n---\nNumbers {numbers} make {target}\n---\nFirst")
    row = kinds["countdown"].load(size=1, style=str(tmp_path / "style.txt"))[0]
    assert row["prompt"].startswith("system\n\nNumbers ")
    assert row["reply_prefix"] == "First"


def test_published_files_by_source(kinds, tmp_path):
    rows = [
        {"id": f"{source}-{i}", "puzzle": "1234341221434300", "solution": "1234341221434321", "source": f"{source}: x"}
        for source, count in (("d1", 2), ("Dream", 3))
        for i in range(count)
    ]
    path = tmp_path / "sudoku.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    load = kinds["sudoku"].load
    assert len(load(path=str(path))) == 5
    assert load(path=str(path), source="dream")["id"] == ["Dream-0", "Dream-1", "Dream-2"]
    with pytest.raises(UsageError, match="d1"):
        load(path=str(path), source="d2")


@pytest.mark.parametrize(("text", "part"), [("{}", "lacks fields"), ("nope", "not JSON"), (None, "cannot be read")])
def test_damaged_files(kinds, tmp_path, text, part):
    path = tmp_path / "x.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=part):
        kinds["countdown"].load(path=str(path))


def test_real_files(kinds, dare_data):
    sudoku = kinds["sudoku"].load(path=str(dare_data / "planning" / "sudoku_test.jsonl"), source="d1")
    countdown = kinds["countdown"].load(path=str(dare_data / "planning" / "countdown_test.jsonl"), source="d1")
    assert (len(sudoku), len(countdown)) == (350, 178)
