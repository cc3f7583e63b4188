"""The data sets' own answers replayed through whole runs: full marks from our scorer and the stock one."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.xdist_group("opencompass")
TEXTS = ("gsm8k", "math500", "aime2024", "aime2025")
CONFIG = """
from mmengine.config import read_base

with read_base():
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as gsm8k
    from opencompass.configs.datasets.math.math_prm800k_500_0shot_cot_gen import math_datasets as math500
    from opencompass.configs.datasets.mbpp.mbpp_gen_830460 import mbpp_datasets as mbpp
    from opencompass.configs.datasets.aime2024.aime2024_gen_17d799 import aime2024_datasets as aime2024
    from dare_eval.configs.datasets.aime.aime2025_gen import aime2025_datasets as aime2025

models, datasets, model_dataset_combinations = [], [], []
"""
PAIR = """
{name}_models = [dict(type="dare_eval.models.replay.ReplayModel", abbr="gold-{name}", path="{path}", batch_size=64)]
models += {name}_models
datasets += {name}
model_dataset_combinations += [dict(models={name}_models, datasets={name})]
"""


def rows(path):
    found = json.loads(path.read_text()).values() if path.suffix == ".json" else map(json.loads, path.open())
    return list(found)


def answers(data):
    """Return question, answer pairs (or task ids) by benchmark: what a model that knows the gold would say."""
    folder = data / "data"
    return {
        "gsm8k": [{"question": r["question"], "output": r["answer"]} for r in rows(folder / "gsm8k/test.jsonl")],
        "math500": [
            {"question": r["problem"], "output": r["solution"]} for r in rows(folder / "math/test_prm800k_500.json")
        ],
        "aime2024": [
            {"question": r["origin_prompt"], "output": f"\\boxed{{{r['gold_answer']}}}"}
            for r in rows(folder / "aime.jsonl")
        ],
        "aime2025": [
            {"question": r["question"], "output": f"\\boxed{{{r['answer']}}}"}
            for r in rows(folder / "aime2025/aime2025.jsonl")
        ],
        "mbpp": [
            {"task_id": r["task_id"], "output": f"{r['code']}\n[DONE]"}
            for r in rows(folder / "mbpp/mbpp.jsonl")[10:510]
        ],
    }


@pytest.fixture
def write(workplace, dare_data):
    """Write a config that replays the gold answers of some benchmarks."""
    workplace.env["DARE_DATA"] = str(dare_data)
    given = answers(dare_data)

    def config(*names):
        text = CONFIG
        for name in names:
            path = workplace.place / f"{name}.jsonl"
            named = [{"item": str(row.get("task_id", i)), **row} for i, row in enumerate(given[name])]
            path.write_text("".join(json.dumps(row) + "\n" for row in named))
            text += PAIR.format(name=name, path=path)
        return workplace.config(text)

    return config


def test_gold_answers_have_full_marks_from_both_scorers(workplace, write):
    done = workplace.run(write(*TEXTS))
    assert done.code == 0, done.text
    stock = {row["model"].removeprefix("gold-"): row["value"] for row in done.report if "stock" in row["metric"]}
    ours = {row["model"].removeprefix("gold-"): row for row in done.report if "stock" not in row["metric"]}
    assert {name: row["value"] for name, row in ours.items()} == dict.fromkeys(TEXTS, 100.0)
    assert all(row["n"] == row["expected"] and row["unrecorded"] == 0 for row in ours.values())
    assert ours["aime2024"]["n"] == ours["aime2025"]["n"] == 30
    assert {name: stock[name] for name in TEXTS[1:]} == dict.fromkeys(TEXTS[1:], 100.0)
    assert 99 < stock["gsm8k"] < 100, "the stock evaluator loses golds with thousands separators"


def test_all_500_solutions_of_mbpp_pass(workplace, write):
    """Task 123 needs seconds of one core, and has them on a busy machine too.

    Ours alone: the stock evaluator takes minutes, a process per program, and gives 96.2 here.
    """
    done = workplace.run("run", write("mbpp"), "--scorer", "dare", program="dare-eval")
    assert done.code == 0, done.text
    failed = [record for record in done.records("gold-mbpp", "mbpp") if not record["correct"]]
    assert [(record["index"], record["detail"]["status"], record["detail"]["reason"]) for record in failed] == []
    row = done.row("pass@1")
    assert (row["n"], row["value"]) == (500, 100.0)
