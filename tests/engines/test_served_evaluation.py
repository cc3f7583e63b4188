"""Whole evaluations through servers on real sockets give the table of in-process decoding, faults or not."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.xdist_group("opencompass")

DECODING = "decoding=dict(gen_length=8, block_length=4, steps=6, cache='block')"
PATIENCE = "server=dict(retries=6, backoff_s=0.05, timeout_s=20, concurrency=4)"
HEAD = """
from mmengine.config import read_base
with read_base():
    from dare_eval.configs.datasets.planning.countdown3_gen import countdown3_datasets
datasets = [dict(countdown3_datasets[0])]
datasets[0]["reader_cfg"] = dict(datasets[0]["reader_cfg"], test_range="[:24]")
"""


def config(workplace, model: str, name: str = "config.py"):
    return workplace.config(f"{HEAD}\n{model}\nmodels = [model]\n", name)


def native() -> str:
    return (
        "from dare_eval.models.sdar import SDARModel\n"
        f"model = dict(type=SDARModel, abbr='bd', path='tiny-bd-countdown', {DECODING}, batch_size=8)"
    )


def sglang(url: str, more: str = PATIENCE, decoding: str = DECODING) -> str:
    return (
        "from dare_eval.models.sglang import SGLangModel\n"
        f"model = dict(type=SGLangModel, abbr='bd', path='tiny-bd-countdown', url='{url}', {decoding},"
        f" batch_size=8, {more})"
    )


def openai(url: str, more: str = PATIENCE) -> str:
    return (
        "from dare_eval.models.openai import OpenAIModel\n"
        f"model = dict(type=OpenAIModel, abbr='bd', path='tiny-bd-countdown', url='{url}',"
        f" generation=dict(gen_length=8), batch_size=8, {more})"
    )


def responses(done):
    return {one["item_id"]: one["response"] for one in records(done)}


def records(done):
    return done.records("bd", "countdown3")


def test_servers_give_the_table_of_in_process_decoding(workplace, serve):
    ours = workplace.run(config(workplace, native()), folder="native")
    assert ours.code == 0, ours.text
    faults = "3:drop,6:half,9:words,12:busy,14:abort,24:empty,26:later,28:slow,33:cut"
    url = serve(faults=faults).url
    theirs = workplace.run(config(workplace, sglang(url)), folder="sglang")
    assert theirs.code == 0, theirs.text
    assert responses(theirs) == responses(ours)
    assert theirs.row("exact")["value"] == ours.row("exact")["value"]
    first, second = (one.records("bd", "countdown3") for one in (ours, theirs))
    for a, b in zip(first, second, strict=True):
        assert b["step_map"][: len(b["tokens"])] == a["step_map"][: len(b["tokens"])]
        assert b["nfe"] >= a["nfe"] > 0
    spoken = workplace.run(config(workplace, openai(url)), folder="openai")
    assert spoken.code == 0, spoken.text
    assert responses(spoken) == responses(ours)
    record = spoken.records("bd", "countdown3")[0]
    assert record["generated_tokens"] > 0 and record["wall_s"] > 0 and record["prompt_tokens"] > 0
    assert record.get("nfe") is None


def test_a_server_killed_in_the_middle_is_a_clear_failure_and_resumes(workplace, serve):
    drawn = DECODING.replace("steps=6", "steps=6, temperature=1.0")
    whole = workplace.run(config(workplace, sglang(serve().url, decoding=drawn)), folder="whole")
    assert whole.code == 0, whole.text
    mortal = serve(faults="13:die")
    short = PATIENCE.replace("retries=6", "retries=1")
    failed = workplace.run(config(workplace, sglang(mortal.url, short, drawn)), folder="runs")
    assert failed.code == 3
    assert "does not answer" in failed.text and "start it again" in failed.text
    again = serve(port=mortal.port)
    resumed = workplace.run(config(workplace, sglang(again.url, short, drawn)), folder="runs")
    assert resumed.code == 0, resumed.text
    other = ("wall_s", "batch_rows", "fingerprint", "run_id")
    a, b = (
        [{k: v for k, v in one.items() if k not in other} for one in done.records("bd", "countdown3")]
        for done in (whole, resumed)
    )
    assert a == b


def test_replies_that_always_lack_a_part_end_the_run_and_say_which(workplace, serve):
    url = serve(faults=",".join(f"{number}:lacks" for number in range(1, 200))).url
    done = workplace.run(config(workplace, sglang(url)))
    assert done.code == 3
    assert "step maps" in done.text


def test_settings_are_refused_before_anything_is_asked(workplace):
    for more, said in (("engine=dict(pp=2)", "pipeline"), ("server=dict(retrys=1)", "retries")):
        done = workplace.run(config(workplace, sglang("http://127.0.0.1:9", more)))
        assert done.code == 2, done.text
        assert said in done.text


def test_two_evaluations_against_one_server_do_not_disturb_each_other(workplace, serve):
    url = serve().url
    drawn = DECODING.replace("steps=6", "steps=6, temperature=1.0")
    path = config(workplace, sglang(url, decoding=drawn))
    one, two = workplace.start(path, folder="one"), workplace.start(path, folder="two")
    first, second = one.wait(), two.wait()
    assert (first.code, second.code) == (0, 0), first.text + second.text
    assert responses(first) == responses(second) and len(responses(first)) == 24
    assert len(set(responses(first).values())) > 6


@pytest.mark.parametrize(
    ("more", "decoding", "said"),
    [
        ((), DECODING.replace("steps=6", "steps=8"), "other rules than are asked for"),
        (("--release", "0.5.9"), DECODING, "another release"),
        (("--key", "k-1"), DECODING, "key_env"),
    ],
)
def test_a_server_that_is_not_the_one_meant_ends_the_run_and_says_why(workplace, serve, more, decoding, said):
    url = serve(more=more).url
    done = workplace.run(config(workplace, sglang(url, PATIENCE, decoding)))
    assert done.code == 3
    assert said in " ".join(done.text.replace("│", " ").split())


def test_a_server_with_a_key_and_a_release_that_is_named_serves(workplace, serve):
    url = serve(more=("--key", "k-1", "--release", "0.6.0")).url
    more = PATIENCE.replace("dict(", "dict(key_env='THE_KEY', ") + ", engine=dict(version='0.6.0')"
    path = config(workplace, sglang(url, more))
    unset = workplace.run(path)
    assert unset.code == 3 and "THE_KEY is not set" in unset.text
    workplace.env["THE_KEY"] = "k-1"
    done = workplace.run(path)
    assert done.code == 0, done.text
    assert done.report[0]["decode_spec"]["engine"] == "sglang 0.6.0"
    kept = (path.read_text(), *(one.read_text(errors="replace") for one in done.run.rglob("*.json")))
    assert not any("k-1" in text for text in kept)
