"""The data sets' own answers replayed through whole runs: full marks from our scorer and from the stock one."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.xdist_group("opencompass")
REPEATS = 8
BENCHMARKS = ("gsm8k", "math500", "aime2024", "aime2025", "mbpp")
CONFIG = """
from mmengine.config import read_base

with read_base():
    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets as gsm8k
    from opencompass.configs.datasets.math.math_prm800k_500_0shot_cot_gen_11c4b5 import math_datasets as math500
    from opencompass.configs.datasets.mbpp.mbpp_gen_830460 import mbpp_datasets as mbpp
    from dare_eval.configs.datasets.aime.aime2024_repeat8_gen import aime2024_datasets as aime2024
    from dare_eval.configs.datasets.aime.aime2025_repeat8_gen import aime2025_datasets as aime2025

model_dataset_combinations = []
"""
PAIR = """
{name}_models = [dict(type="dare_eval.models.replay.ReplayModel", abbr="gold-{name}", path="{path}", batch_size=64)]
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
            {"task_id": r["task_id"], "output": f"{r['code']}\n[DONE]"} for r in rows(folder / "mbpp/mbpp.jsonl")[10:510]
        ],
    }


@pytest.fixture
def done(workplace, dare_data):
    workplace.env["DARE_DATA"] = str(dare_data)
    text = CONFIG
    for name, given in answers(dare_data).items():
        path = workplace.place / f"{name}.jsonl"
        named = [{"item": str(row.get("task_id", i)), **row} for i, row in enumerate(given)]
        repeats = REPEATS if name.startswith("aime") else 1
        path.write_text("".join(json.dumps(row) + "\n" for row in named for _ in range(repeats)))
        text += PAIR.format(name=name, path=path)
    finished = workplace.run(workplace.config(text))
    assert finished.code == 0, finished.text
    return finished


def test_gold_answers_have_full_marks(done):
    ours = {row["model"]: row for row in done.report if row["metric"] in ("accuracy", "pass@1")}
    assert {name: ours[f"gold-{name}"]["value"] for name in BENCHMARKS} == dict.fromkeys(BENCHMARKS, 100.0)
    assert {name: ours[f"gold-{name}"]["unrecorded"] for name in BENCHMARKS} == dict.fromkeys(BENCHMARKS, 0)
    assert ours["gold-mbpp"]["n"] == 500
    stock = {row["model"]: row["value"] for row in done.report if row["metric"].startswith("stock")}
    print(stock, {n: ours[f"gold-{n}"]["n"] for n in BENCHMARKS})
    assert set(stock) == set(ours)
