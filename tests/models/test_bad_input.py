"""Wrong settings and damaged checkpoints are refused before decoding, with the key, the value and what is allowed."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("opencompass")
SHIPPED = ROOT / "dare_eval" / "assets" / "tiny-sudoku"
SHAPE = {"gen_length": 16, "block_length": 16, "steps": 16}


def sudoku(workplace, *, path="tiny-sudoku", decoding=None, **settings):
    base = (ROOT / "configs" / "datasets" / "planning" / "sudoku4_gen.py").read_text()
    listed = "".join(f", {key}={value!r}" for key, value in settings.items())
    return workplace.config(f"""{base}
decoding = {SHAPE if decoding is None else decoding!r}
models = [dict(type="dare_eval.models.llada.LLaDAModel", abbr="tiny", path={path!r}, decoding=decoding{listed})]
datasets = [dict(sudoku4_datasets[0], size=4)]
""")


def assert_refused(done, *parts):
    assert done.code in (2, 3), done.text
    assert done.err.count("╭") == 1, done.err
    for part in parts:
        assert part in done.err, (part, done.err)
    assert not list((done.run / "predictions").rglob("*.items.jsonl")) if (done.run / "predictions").exists() else True


@pytest.mark.parametrize(
    ("decoding", "parts"),
    [
        ({**SHAPE, "gen_lenght": 16}, ("gen_lenght", "gen_length")),
        ({**SHAPE, "temperature": -0.1}, ("temperature", "-0.1", "at least 0")),
        ({**SHAPE, "block_length": 6}, ("gen_length = 16, block_length = 6", "multiple", "remedy")),
        ({**SHAPE, "policy": "treshold"}, ("treshold", "threshold")),
        ({}, ("decode settings", "gen_length")),
    ],
)
def test_decode_settings(workplace, decoding, parts):
    done = workplace.run(sudoku(workplace, decoding=decoding))
    assert done.code == 2
    assert_refused(done, *parts)


def test_setting_of_the_wrapper(workplace):
    assert_refused(workplace.run(sudoku(workplace, devise="cpu")), "devise", "device")


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"batch_size": -3}, ("batch_size", "-3", "above 0")),
        ({"batch_size": "all"}, ("batch_size", "all", "above 0")),
        ({"path": ""}, ("path", "packaged name")),
    ],
)
def test_settings_that_only_the_runtime_reads(workplace, settings, parts):
    done = workplace.run(sudoku(workplace, **settings))
    assert done.code == 2
    assert_refused(done, *parts)


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"attn_backend": "spda"}, ("spda", "sdpa", "flex")),
        ({"device": "cdua"}, ("cdua", "cuda", "auto")),
        ({"device": "cpu:x"}, ("cpu:x", "cuda:1")),
        ({"max_seq_len": 0}, ("max_seq_len", "0", "above 0", "64")),
        ({"max_seq_len": -5}, ("max_seq_len", "-5", "above 0")),
        ({"max_seq_len": "long"}, ("max_seq_len", "long", "above 0")),
        ({"max_seq_len": 16}, ("gen_length = 16", "context 16", "remedy")),
        ({"decoding": {**SHAPE, "gen_length": 64, "steps": 64}}, ("context 64", "gen_length = 32")),
        ({"decoding": {**SHAPE, "stop_ids": [7, 5000]}}, ("stop_ids", "5000", "0 .. 123", "tokenizer")),
        ({"meta_template": "x"}, ("meta_template", "round=")),
        ({"record_x0": "no"}, ("record_x0", "'no'", "True or False")),
        ({"likelihood": "x"}, ("likelihood", "x", "mc_num")),
        ({"likelihood": {"mc_nun": 8}}, ("mc_nun", "mc_num")),
    ],
    ids=str,
)
def test_settings_that_loading_would_stumble_over_are_refused_when_planned(workplace, settings, parts):
    done = workplace.run(sudoku(workplace, **settings))
    assert done.code == 2
    assert_refused(done, *parts)


def test_a_device_that_this_machine_lacks(workplace):
    assert_refused(workplace.run(sudoku(workplace, device="cuda:31")), "cuda:31", "on this machine", "device = 'auto'")


def test_faults_of_several_models_are_listed_together(workplace):
    text = sudoku(workplace).read_text()
    changes = {"a": 'attn_backend="spda"', "b": 'path="tiny-sudoko"', "c": "max_seq_len=0"}
    listed = ", ".join(f"dict(models[0], abbr={name!r}, {change})" for name, change in changes.items())
    file = workplace.place / "config.py"
    file.write_text(f"{text}\nmodels = [*models, {listed}]\n")
    for arguments, program in ((["run", file, "--check"], "dare-eval"), ([file], "opencompass")):
        done = workplace.run(*arguments, program=program)
        assert done.code == 2
        assert_refused(done, "3 things", "model 'a'", "spda", "model 'b'", "tiny-sudoko", "model 'c'", "max_seq_len")


def test_decoding_that_is_no_dict(workplace):
    done = workplace.run(sudoku(workplace, decoding="fast"))
    assert done.code == 2
    assert_refused(done, "decoding", "fast", "dict(")


def test_mask_id_that_is_no_number(workplace):
    done = damaged(workplace, lambda folder: edit(folder, "config.json", mask_token_id="<mask>"))
    assert done.code == 2
    assert_refused(done, "mask_token_id", "<mask>", "an integer")


def test_mask_token_taken_out_of_the_vocabulary(workplace):
    def change(folder):
        path = folder / "tokenizer.json"
        content = json.loads(path.read_text())
        content["added_tokens"] = [one for one in content["added_tokens"] if one["id"] != 1]
        content["model"]["vocab"].pop("<mask>")
        path.write_text(json.dumps(content))
        edit(folder, "tokenizer_config.json", mask_token=None)

    assert_refused(damaged(workplace, change), "no mask token", "the id 1")


def test_whole_numbers_in_the_place_of_weights(workplace):
    from safetensors.torch import load_file, save_file

    def change(folder):
        tensors = load_file(folder / "model.safetensors")
        key = "model.transformer.ln_f.weight"
        save_file({**tensors, key: tensors[key].int()}, folder / "model.safetensors")

    assert_refused(damaged(workplace, change), "model.transformer.ln_f.weight", "int32", "float32")


def test_weights_that_are_not_numbers(workplace):
    from safetensors.torch import load_file, save_file

    def change(folder):
        tensors = load_file(folder / "model.safetensors")
        tensors["model.transformer.ln_f.weight"][3] = float("nan")
        save_file(tensors, folder / "model.safetensors")

    assert_refused(damaged(workplace, change), "model.transformer.ln_f.weight", "1 of 64", "again")


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("{% for m in messages %}{{ m['content'] }", ("cannot be applied", "TemplateSyntaxError")),
        ("{{ raise_exception('no turns') }}", ("cannot be applied", "no turns")),
        ("{{ messages[0]['content'] + 1 }}", ("cannot be applied", "TypeError")),
        ("Hello", ("leaves out what is asked", "Hello")),
    ],
    ids=["syntax", "raises", "type", "no question"],
)
def test_chat_template_that_does_not_work(workplace, template, parts):
    done = damaged(workplace, lambda folder: (folder / "chat_template.jinja").write_text(template))
    assert_refused(done, "failed (plan)", *parts, "chat_template.jinja")


def test_damaged_tokenizer(workplace):
    assert_refused(
        damaged(workplace, lambda folder: (folder / "tokenizer.json").write_text("{}")), "tokenizer", "again"
    )


def test_model_that_does_not_exist(workplace):
    assert_refused(
        workplace.run(sudoku(workplace, path="tiny-sudoko")), "tiny-sudoko", "tiny-sudoku", "DARE_MODEL_TINY_SUDOKO"
    )


def damaged(workplace, change):
    folder = workplace.place / "checkpoint"
    shutil.copytree(SHIPPED, folder)
    change(folder)
    return workplace.run(sudoku(workplace, path=str(folder)))


def edit(folder, name, **values):
    path = folder / name
    content = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in {**content, **values}.items() if value is not None}))


def test_pad_equal_to_mask(workplace):
    assert_refused(damaged(workplace, lambda folder: edit(folder, "config.json", pad_token_id=1)), "pad", "mask", "= 1")


def test_tokenizer_without_mask_token(workplace):
    def change(folder):
        edit(folder, "config.json", mask_token_id=None)
        edit(folder, "tokenizer_config.json", mask_token=None)

    assert_refused(damaged(workplace, change), "mask_token", "remedy")


def test_tokenizer_and_config_that_disagree(workplace):
    assert_refused(
        damaged(workplace, lambda folder: edit(folder, "config.json", mask_token_id=5)), "tokenizer 1, config 5"
    )


@pytest.mark.parametrize("keep", [0, 100, 300_000], ids=["empty", "header cut", "tensors cut"])
def test_truncated_safetensors(workplace, keep):
    def change(folder):
        file = folder / "model.safetensors"
        file.write_bytes(file.read_bytes()[:keep])

    assert_refused(damaged(workplace, change), "model.safetensors")


def test_corrupt_safetensors_header(workplace):
    def change(folder):
        raw = bytearray((folder / "model.safetensors").read_bytes())
        raw[8:40] = b"\xff" * 32
        (folder / "model.safetensors").write_bytes(raw)

    assert_refused(damaged(workplace, change), "model.safetensors")


def test_family_of_another_wrapper(workplace):
    text = sudoku(workplace).read_text().replace("llada.LLaDAModel", "sdar.SDARModel")
    done = workplace.run(workplace.config(text.split("summarizer = dict(type=ReportSummarizer)", 1)[1]))
    assert_refused(done, "SDARModel", "llada", "sdar")


def test_prompt_longer_than_the_context(workplace):
    done = workplace.run(sudoku(workplace, max_seq_len=24))
    assert done.code == 3
    for part in ("item 0 (and of 3 more)", "prompt tokens + gen_length 16", "24 tokens", "fewer examples"):
        assert part in done.err, done.err
    [items] = (done.run / "predictions").rglob("*.items.jsonl")
    assert items.read_text() == ""
