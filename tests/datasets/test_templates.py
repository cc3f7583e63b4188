"""Equivalent templates over upstream's own config files, read as text so that OpenCompass need not be imported."""

from __future__ import annotations

import builtins
import copy
import importlib.util
import json
import re
from pathlib import Path

import pytest

from dare_eval.datasets.templates import template_name, template_names, with_template, with_templates, wordings
from dare_eval.errors import UsageError
from dare_eval.puzzles.prompts import EQUIVALENT_GROUPS, countdown_prompt, list_prompt, sudoku_prompt

STOCK = {
    "gsm8k": ("gsm8k/gsm8k_gen_1d7fe4.py", ["question"]),
    "math500": ("math/math_prm800k_500_0shot_cot_gen_11c4b5.py", ["problem"]),
    "humaneval": ("humaneval/humaneval_gen_8e312c.py", ["prompt"]),
    "mbpp": ("mbpp/mbpp_gen_830460.py", ["text", "test_list"]),
    "sanitized_mbpp": ("mbpp/sanitized_mbpp_gen_742f0c.py", ["text", "test_list"]),
}


class Names(dict):
    """Globals in which a class that a config imports is its own name."""

    def __missing__(self, key):
        if hasattr(builtins, key):
            raise KeyError(key)
        return key


def stock(name):
    root = Path(importlib.util.find_spec("opencompass").submodule_search_locations[0]) / "configs" / "datasets"
    text = (root / STOCK[name][0]).read_text()
    text = re.sub(r"^from \S+ import (\([^)]*\)|.*)$", "", text, flags=re.MULTILINE)
    found = Names()
    exec(compile(text, name, "exec"), {}, found)
    return next(value for key, value in found.items() if key.endswith("_datasets"))[0]


def turns(config, role="HUMAN"):
    template = config["infer_cfg"]["prompt_template"]["template"]
    if isinstance(template, str):
        return [template]
    return [turn["prompt"] for turn in template["round"] if turn["role"] == role]


@pytest.mark.parametrize("name", sorted(STOCK))
def test_three_wordings_of_an_upstream_config_and_its_file_stays_as_it_is(name):
    config = stock(name)
    before = json.dumps(config)
    names = template_names(config)
    assert names == ["t1", "t2", "t3"]
    made = [with_template(config, number) for number in (1, 2, 3)]
    assert made[0] is config and json.dumps(config) == before
    assert [template_name(one) for one in made] == [None, "t2", "t3"]
    asked = [tuple(turns(one)) for one in made]
    assert len(set(asked)) == 3
    for texts in asked:
        assert len(texts) == len(asked[0])
        for column in STOCK[name][1]:
            assert texts[-1].count(f"{{{column}}}") == 1
        assert all(new != old for new, old in zip(texts, asked[0], strict=True)) or texts == asked[0]
    if not isinstance(config["infer_cfg"]["prompt_template"]["template"], str):
        assert all(turns(one, "BOT") == turns(config, "BOT") for one in made)


def test_examples_keep_their_content():
    first, second = turns(stock("gsm8k"))[0], turns(with_template(stock("gsm8k"), 2))[0]
    assert second.startswith("Problem: Angelo and Melanie want to plan")
    body = first.removeprefix("Question: ").partition("\nLet's think")[0]
    assert body in second and "Let's think step by step" not in second
    shots = turns(with_template(stock("sanitized_mbpp"), 3))[0]
    assert shots.count("Task for an expert Python programmer:") == 4 and shots.count("[BEGIN]") == 3
    assert "assert is_not_prime(35) == True" in shots


def test_a_prompt_of_other_wording_and_a_number_without_a_template_are_refused():
    other = copy.deepcopy(stock("math500"))
    other["infer_cfg"]["prompt_template"]["template"]["round"][0]["prompt"] = "{problem}\nAnswer briefly."
    with pytest.raises(UsageError, match="worded in another way"):
        with_template(other, 2)
    with pytest.raises(UsageError, match="no template 4"):
        with_template(stock("math500"), 4)
    tiny = {"type": "dare_eval.datasets.sudoku.SudokuDataset", "abbr": "sudoku4", "style": "tiny", "infer_cfg": {}}
    assert template_names(tiny) == ["tiny"]
    with pytest.raises(UsageError, match="no template 2"):
        with_template(tiny, 2)


def test_likelihood_data_and_unknown_benchmarks_have_one_template():
    config = stock("gsm8k")
    config["infer_cfg"]["inferencer"]["type"] = "PPLInferencer"
    assert template_names(config) == ["t1"]
    assert template_names({"type": "WhateverDataset", "abbr": "x"}) == ["t1"]


def test_planning_styles_go_round_from_the_one_of_the_config():
    base = {"type": "dare_eval.datasets.sudoku.SudokuDataset", "abbr": "s", "infer_cfg": {}}
    for group in EQUIVALENT_GROUPS:
        for style in group:
            names = template_names({**base, "style": style})
            assert names[0] == style and set(names) == set(group) and len(group) >= 3
    made = with_templates([{**base, "style": "d1_eval"}], 3)
    assert [(one["abbr"], one["style"]) for one in made] == [
        ("s@d1_eval", "d1_eval"), ("s@d1_eval_2", "d1_eval_2"), ("s@d1_eval_3", "d1_eval_3"),
    ]  # fmt: skip


def test_equivalent_styles_ask_in_the_same_form():
    from dare_eval.puzzles.list_ops import generate

    [task] = generate("test", 1, operations=("reverse",))
    for group in EQUIVALENT_GROUPS:
        sudoku = [sudoku_prompt("0123000000000000", style) for style in group]
        countdown = [countdown_prompt((3, 5, 7), 26, style) for style in group]
        for made in (sudoku, countdown):
            assert len({one.text for one in made}) == len(group) and len({one.prefix for one in made}) == 1
            assert all("<answer>" in one.text for one in made)
            assert len({"<reasoning>" in one.text for one in made}) == 1
        assert all("0123000000000000" in one.text for one in sudoku)
        assert all("26" in one.text and "3, 5, 7" in one.text for one in countdown)
    assert len({list_prompt(task, style).text for style in EQUIVALENT_GROUPS[0]}) == 3


def test_every_form_uses_the_groups_of_its_pattern():
    for entry in wordings().values():
        groups = set(re.compile(entry["match"]).groupindex)
        assert len(entry["forms"]) >= 2
        for form in entry["forms"]:
            assert set(re.findall(r"\{(\w+)\}", form)) == groups
