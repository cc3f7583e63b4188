"""What the shipped list model was trained on: whole answers, known words, lists that no test asks about."""

from __future__ import annotations

import json
from itertools import islice

from dare_eval.networks.paths import ASSETS
from dare_eval.puzzles import list_ops
from dare_train.data.puzzles import LIST_CANVAS, LIST_LENGTHS, puzzle_rows
from dare_train.data.tokenizer import EOS, UNK, build_puzzle_tokenizer

ROWS = list(islice(puzzle_rows("list_ops", "train", 3000), 3000))


def test_every_answer_fills_the_canvas_and_every_word_has_a_token():
    tokenizer = build_puzzle_tokenizer("list_ops")
    unknown = tokenizer.convert_tokens_to_ids(UNK)
    prompts = tokenizer([row["prompt"] for row in ROWS], add_special_tokens=False)["input_ids"]
    answers = tokenizer([row["response"] for row in ROWS], add_special_tokens=False)["input_ids"]
    assert all(unknown not in ids for ids in prompts + answers)
    assert {len(ids) for ids in answers} == {LIST_CANVAS}
    assert all(ids[-1] == tokenizer.eos_token_id for ids in answers)


def test_answers_are_right_and_every_operation_is_taught():
    tasks = list_ops.generate("train", 3000, operations=list_ops.ALL_OPERATIONS, lengths=LIST_LENGTHS)
    for row, task in zip(ROWS, tasks, strict=True):
        assert task.accepts(row["response"].replace(EOS, "").split())
    assert {task.operation for task in tasks} == set(list_ops.ALL_OPERATIONS)


def test_no_tested_list_was_trained_on():
    asked = {
        task.items
        for split in ("test", "validation")
        for task in list_ops.generate(split, 400, operations=list_ops.ALL_OPERATIONS, lengths=LIST_LENGTHS)
    }
    trained = {tuple(row["prompt"].rpartition(" : ")[2].split()) for row in ROWS}
    assert len(trained) > 2500 and not asked & trained


def test_the_shipped_tokenizer_is_the_one_of_the_recipe_and_the_checkpoint_is_small():
    folder = ASSETS / "tiny-list-ops"
    shipped = json.loads((folder / "tokenizer.json").read_text())
    assert shipped["model"]["vocab"] == build_puzzle_tokenizer("list_ops").get_vocab()
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2**20
