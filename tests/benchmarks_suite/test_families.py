"""The stock configs of the families, typed as a user types them, on tiny checkpoints of each format."""

from __future__ import annotations

import json

import pytest

from dare_eval.presets import find
from dare_eval.presets.catalog import model_of
from dare_eval.spec import DecodeSpec
from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("opencompass")
EVAL = ROOT / "configs" / "eval"
PRESETS = {
    "llada": ("llada", "llada-8b-instruct"),
    "dream": ("dream", "dream-7b-instruct"),
    "sdar": ("sdar", "sdar-8b-chat"),
    "llada2": ("llada2", "llada2.0-mini"),
}
OPENS = {
    "llada": "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\n",
    "dream": "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n",
    "sdar": "<|im_start|>user\n",
    "llada2": "<role>SYSTEM</role>detailed thinking off<|role_end|><role>HUMAN</role>",
}
CLOSES = {
    "llada": "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "dream": "<|im_end|>\n<|im_start|>assistant\n",
    "sdar": "<|im_end|>\n<|im_start|>assistant\n",
    "llada2": "<|role_end|><role>ASSISTANT</role>",
}


@pytest.mark.parametrize("family", PRESETS)
def test_gsm8k_end_to_end(stocked, dare_data, family):
    stocked.env |= {"DARE_DATA": str(dare_data), "DARE_LIMIT": "1"}
    done = stocked.run(EVAL / f"{family}_gsm8k.py")
    assert done.code == 0, done.text
    name, model = PRESETS[family]
    row = done.row("accuracy", dataset="gsm8k")
    expected = DecodeSpec.build(name, **find(model, "gsm8k").decoding, dtype="bfloat16")
    assert row["decode_spec"] == expected.to_dict()
    assert row["n"] == row["expected"] == 1
    assert row["nfe"] >= 1
    assert "subset: first 1" in row["labels"]
    assert "running on the CPU" in done.text
    [record] = done.records(model, "gsm8k")
    assert record["prompt"].startswith(OPENS[family])
    assert record["prompt"].endswith(CLOSES[family])
    manifest = json.loads((done.run / "manifest.json").read_text())
    assert manifest["models"][0]["decode_specs"] == {"gsm8k": expected.to_dict()}
    assert manifest["datasets"][0]["prompt_hash"].startswith("1d7fe4")


def test_one_model_is_bound_to_each_benchmark_in_turn(stocked, dare_data):
    stocked.env |= {"DARE_DATA": str(dare_data), "DARE_LIMIT": "2"}
    path = stocked.env.pop("DARE_MODEL_LLADA_8B_INSTRUCT")
    done = stocked.run(
        "run", "--model", "llada-8b-instruct", "--bench", "hellaswag,gpqa,arc_c_ppl", "--path", path,
        "--set", "dtype=float32", "--set", "likelihood.mc_num=8", program="dare-eval",
    )  # fmt: skip
    assert done.code == 0, done.text
    specs = {row["dataset"]: row["decode_spec"] for row in done.report if row["metric"] == "accuracy"}
    assert specs["hellaswag"]["gen_length"] == specs["hellaswag"]["steps"] == 3
    assert (specs["GPQA_diamond"]["gen_length"], specs["GPQA_diamond"]["eos_rule"]) == (64, "confidence_eos_eot_inf")
    assert (specs["ARC-c-ppl"]["task"], specs["ARC-c-ppl"]["mc_num"]) == ("likelihood", 8)
    assert len(list((done.run / "logs" / "infer").rglob("*.out"))) == 1
    config = (done.run.parent / "config.py").read_text()
    assert 'models[0]["decoding"]["dtype"] = \'float32\'' in config
    assert "gen_length" not in config


def test_preset_on_an_unknown_data_set_says_what_to_set(stocked):
    text = """
from opencompass.datasets import CustomDataset
from dare_eval.models.llada import LLaDAModel
from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.openicl.icl_retriever import ZeroRetriever
from opencompass.openicl.icl_inferencer import GenInferencer
from opencompass.openicl.icl_evaluator import AccEvaluator
models = [dict(type=LLaDAModel, abbr="m", path="tiny-sudoku", decoding=dict(preset="llada-8b-instruct"))]
datasets = [dict(
    type=CustomDataset, abbr="mine", path=FILE,
    reader_cfg=dict(input_columns=["question"], output_column="answer"),
    infer_cfg=dict(
        prompt_template=dict(type=PromptTemplate, template="{question}"),
        retriever=dict(type=ZeroRetriever), inferencer=dict(type=GenInferencer),
    ),
    eval_cfg=dict(evaluator=dict(type=AccEvaluator)),
)]
"""
    rows = stocked.place / "mine.jsonl"
    rows.write_text('{"question": "1 2 3", "answer": "4"}\n')
    done = stocked.run(stocked.config(text.replace("FILE", repr(str(rows)))))
    assert done.code == 2
    assert "no benchmark is known for this data set" in done.text
    assert "gen_length" in done.text


# Dream's preset sorts the vocabulary at 512 positions in 512 steps; test_run_by_name has it with fewer.
@pytest.mark.parametrize("family", ["llada", "llada_moe", "sdar", "sdar_moe", "llada2", "llada21"])
def test_sudoku_of_every_family_needs_no_data(stocked, family):
    stocked.env["DARE_LIMIT"] = "1"
    done = stocked.run(EVAL / f"{family}_sudoku.py")
    assert done.code == 0, done.text
    row = done.row("exact", dataset="sudoku4-chat")
    assert row["n"] == 1
    [model] = json.loads((done.run / "manifest.json").read_text())["models"]
    assert model["name"] == model_of(family, "sudoku")
    expected = find(model["name"], "sudoku").decoding
    assert {key: row["decode_spec"][key] for key in expected} == expected
    assert model["family"] == row["decode_spec"]["family"] == family.replace("llada21", "llada2")
