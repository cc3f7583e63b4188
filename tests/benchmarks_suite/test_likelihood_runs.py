"""Multiple choice by likelihood through real command lines: records, reports, resumption after a kill."""

from __future__ import annotations

import json

import pytest

from tests.conftest import ROOT
from tests.runtime.test_resume import wait_for_items

pytestmark = pytest.mark.xdist_group("opencompass")
WINO = [
    ("The trophy does not fit in the suitcase because the _ is too big.", "trophy", "suitcase", "1"),
    ("Ann helped Bea because _ was tired after work.", "Ann", "Bea", "2"),
    ("The cat chased the mouse until the _ hid under the sofa.", "cat", "mouse", "2"),
]
HEAD = """
from mmengine.config import read_base
from dare_eval.models.llada import LLaDABaseModel, LLaDAModel
with read_base():
    from opencompass.configs.datasets.ARC_c.ARC_c_ppl_a450bd import ARC_c_datasets as turns
    from opencompass.configs.datasets.ARC_c.ARC_c_ppl_d52a21 import ARC_c_datasets as texts
    from opencompass.configs.datasets.winogrande.winogrande_ll_c5cf57 import winogrande_datasets as gaps
    from opencompass.configs.datasets.winogrande.winogrande_5shot_ll_252f01 import winogrande_datasets as shots
"""
VOLATILE = ("wall_s", "batch_rows", "fingerprint")


def model(path, wrapper: str = "LLaDABaseModel", **settings) -> str:
    named = "".join(f", {key}={value!r}" for key, value in settings.items())
    return f'models = [dict(type={wrapper}, abbr="m", path="{path}", batch_size=2{named})]'


def questions(folder, count: int = 6):
    """Write ARC-like rows into ``folder`` in OpenCompass' layout; the right answers lie at every letter."""
    place = folder / "data" / "ARC" / "ARC-c"
    place.mkdir(parents=True)
    rows = []
    for number in range(count):
        choices = [{"label": letter, "text": f"{letter * 2} number {number + i}"} for i, letter in enumerate("ABCD")]
        question = {"stem": f"Which comes after {number}?", "choices": choices}
        rows.append({"id": str(number), "question": question, "answerKey": "ABCD"[number % 4]})
    for split in ("Dev", "Test"):
        (place / f"ARC-Challenge-{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def sentences(folder):
    """Write sentences with a gap into ``folder`` in OpenCompass' layout."""
    place = folder / "data" / "winogrande"
    place.mkdir(parents=True)
    for split in ("dev", "train_xs"):
        rows = [dict(zip(("sentence", "option1", "option2", "answer"), row, strict=True)) for row in WINO * 4]
        (place / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def settled(done, name):
    return [{k: v for k, v in record.items() if k not in VOLATILE} for record in done.records("m", name)]


@pytest.fixture
def fed(workplace):
    questions(workplace.place)
    sentences(workplace.place)
    workplace.env["COMPASS_DATA_CACHE"] = str(workplace.place)
    return workplace


def test_options_are_scored_given_what_they_share(fed, checkpoints):
    text = HEAD + model(checkpoints["llada"], likelihood={"mc_num": 16}) + "\ndatasets = [*turns]"
    done = fed.run(fed.config(text))
    assert done.code == 0, done.text
    row = done.row("accuracy", dataset="ARC-c")
    assert (row["n"], row["expected"]) == (6, 6)
    assert row["low"] < row["value"] < row["high"] or row["value"] in (0, 100)
    assert row["decode_spec"]["estimator"] == "counts"
    records = done.records("m", "ARC-c")
    for record in records:
        found = record["likelihood"]
        assert record["prompt"].endswith("Answer: \n")
        assert [one["label"] for one in found["options"]] == ["A", "B", "C", "D"]
        best = max(found["options"], key=lambda one: one["per_token"])
        assert record["response"] == best["label"] == found["options"][found["chosen"]]["label"]
        assert record["nfe"] == sum(one["nfe"] for one in found["options"])
        assert all(one["stderr"] > 0 and one["loglik"] < 0 for one in found["options"])
        assert record["correct"] == record["upstream_correct"] == (record["response"] == record["reference"])
    assert row["nfe"] == pytest.approx(sum(record["nfe"] for record in records) / 6)
    stock = done.row("stock accuracy", dataset="ARC-c")
    assert stock["value"] == pytest.approx(row["value"])
    entry = json.loads((done.run / "manifest.json").read_text())["datasets"][0]
    assert entry["prompt_hash"].startswith("a450bd")
    assert entry["scorer"].startswith("label@")
    prediction = json.loads((done.run / "predictions" / "m" / "ARC-c.json").read_text())["0"]
    assert prediction["label: A"]["PPL"] == pytest.approx(-records[0]["likelihood"]["options"][0]["per_token"])
    assert any(label.startswith("choices within 2 Monte-Carlo errors: ") for label in row["labels"])
    assert "choices within" in done.out


@pytest.mark.parametrize(
    ("family", "estimator"),
    [
        ("llada", "counts"),
        ("llada_moe", "counts"),
        ("dream", "bernoulli"),
        ("sdar", "blocks"),
        ("sdar_moe", "blocks"),
        ("llada2", "blocks"),
        ("llada21", "blocks"),
    ],
)
def test_stock_config_of_every_family(stocked, family, estimator):
    questions(stocked.place)
    stocked.env |= {"COMPASS_DATA_CACHE": str(stocked.place), "DARE_LIMIT": "2"}
    done = stocked.run(ROOT / "configs" / "eval" / f"{family}_arc_c_ppl.py")
    assert done.code == 0, done.text
    row = done.row("accuracy", dataset="ARC-c-ppl")
    assert row["n"] == row["expected"] == 2
    assert row["decode_spec"]["estimator"] == estimator
    assert row["decode_spec"]["dtype"] == "bfloat16"
    assert row["decode_spec"]["mc_num"] == 128


def test_texts_chat_turns_gaps_and_examples(fed, checkpoints):
    extra = "\ntexts[0]['abbr'] = 'texts'\nshots[0]['abbr'] = 'shots'\ndatasets = [*turns, *texts, *gaps, *shots]"
    chat = model(checkpoints["llada"], "LLaDAModel", likelihood={"mc_num": 8, "rank_by": "byte"})
    done = fed.run(fed.config(HEAD + chat + extra))
    assert done.code == 0, done.text
    assert {row["dataset"]: row["n"] for row in done.report if row["metric"] == "accuracy"} == {
        "ARC-c": 6, "texts": 6, "winogrande": 12, "shots": 12,
    }  # fmt: skip
    assert done.records("m", "ARC-c")[0]["prompt"].endswith("assistant<|end_header_id|>\n\n")
    assert done.records("m", "texts")[0]["prompt"].endswith("\nAnswer: ")
    gap, shot = done.records("m", "winogrande")[0], done.records("m", "shots")[0]
    assert gap["likelihood"]["rank_by"] == "byte"
    assert len({one["n_tokens"] for one in gap["likelihood"]["options"]}) == 1
    assert [one["label"] for one in gap["likelihood"]["options"]] == [1, 2]
    assert len(shot["prompt"]) > 3 * len(gap["prompt"])


def test_examples_that_do_not_fit_are_dropped_and_counted(fed, checkpoints):
    small = model(checkpoints["llada"], likelihood={"mc_num": 8}, max_seq_len=60)
    done = fed.run(fed.config(HEAD + small + "\ndatasets = [*shots]"))
    assert done.code == 0, done.text
    dropped = [record["likelihood"].get("dropped_examples", 0) for record in done.records("m", "winogrande")]
    assert any(dropped)
    assert max(dropped) <= 5


def test_a_gap_with_nothing_behind_it_ends_the_data_set_before_any_item_is_scored(fed, checkpoints):
    place = fed.place / "data" / "winogrande" / "dev.jsonl"
    odd = {"sentence": "The cat chased the _", "option1": "mouse", "option2": "dog", "answer": "1"}
    place.write_text(place.read_text() + json.dumps(odd) + "\n")
    done = fed.run(fed.config(HEAD + model(checkpoints["llada"], likelihood={"mc_num": 8}) + "\ndatasets = [*gaps]"))
    assert done.code == 3, done.text
    for part in ("item 12: the continuation is empty", "cont = ''"):
        assert part in done.err, done.err
    [items] = (done.run / "predictions").rglob("*.items.jsonl")
    assert items.read_text() == ""


def test_scores_that_are_no_numbers_are_failed_items(fed, checkpoints):
    given = {"mc_num": 8, "cfg_scale": 1e38}
    done = fed.run(fed.config(HEAD + model(checkpoints["llada"], likelihood=given) + "\ndatasets = [*turns]"))
    assert done.code == 3, done.text
    for part in ("the model raised on item 0", "of option 'A' is no finite number", "cfg_scale"):
        assert part in " ".join(done.err.split()), done.err


def test_a_changed_estimate_is_a_new_result_and_the_same_one_is_kept(fed, checkpoints):
    first = HEAD + model(checkpoints["llada"], likelihood={"mc_num": 8}) + "\ndatasets = [*turns]"
    done = fed.run(fed.config(first))
    again = fed.run(fed.config(first.replace("batch_size=2", "batch_size=3")), "-r")
    assert "Partitioned into 0 tasks" in again.text
    other = fed.run(
        fed.config(first.replace('"mc_num": 8', '"mc_num": 16').replace("'mc_num': 8", "'mc_num': 16")), "-r"
    )
    assert other.code == 0, other.text
    assert "is stale and was moved aside" in other.text
    assert done.run == again.run == other.run
    assert other.row("accuracy", dataset="ARC-c")["decode_spec"]["mc_num"] == 16


def test_killed_and_continued_gives_the_same_scores(fed, checkpoints):
    text = HEAD + model(checkpoints["llada"], likelihood={"mc_num": 512}) + "\ndatasets = [*turns, *gaps]"
    place = fed.config(text.replace("batch_size=2", "batch_size=1"))
    started = fed.start(place)
    wait_for_items(fed.place / "runs", 3)
    started.kill()
    assert started.wait().code == -9
    done = fed.run(place)
    assert done.code == 0, done.text
    assert "decoded items of" in done.text
    whole = fed.run(place, folder="whole")
    for name in ("ARC-c", "winogrande"):
        assert settled(done, name) == settled(whole, name)


def test_next_token_inferencer_is_refused_before_anything_runs(fed, checkpoints):
    text = HEAD + model(checkpoints["llada"]) + "\nfrom opencompass.openicl.icl_inferencer import CLPInferencer"
    text += "\nturns[0]['infer_cfg']['inferencer'] = dict(type=CLPInferencer)\ndatasets = [*turns]"
    done = fed.run(fed.config(text))
    assert done.code == 2
    assert "a masked diffusion model has none" in " ".join(done.text.split())
