"""--dry-run: committed recipes of real models without their weights, what cannot be looked at, and the numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from rich.console import Console

from dare_eval.errors import DareError, DataError, UsageError
from dare_train.algorithms.build import METHODS
from dare_train.config import VERBS, DataSettings, LoraSettings, PairSettings, TextSettings
from dare_train.dry_run import amount, dry_run, duration
from dare_train.estimate import Sizes, adapter_parameters
from dare_train.reading import assumed_rows
from dare_train.settings import load_config
from dare_train.setup import plan_here

RECIPES = Path(__file__).parents[2] / "configs/train"
REAL = ("llada_8b", "dream_7b", "sdar_8b", "sdar_30b_a3b", "llada2_mini")
NAMES = [*(f"{kind}_{name}" for name in REAL for kind in ("sft", "lora")), "vrpo_llada_8b", "vrpo_dream_7b"]
PARAMETERS_B = {"llada_8b": 8.0, "dream_7b": 7.6, "sdar_8b": 8.2, "sdar_30b_a3b": 30.5, "llada2_mini": 16.3}
"""Published sizes, in thousand millions."""


@pytest.fixture
def console():
    return Console(width=200, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: PTH123


def recipe(name):
    verb = "preference" if name.startswith("vrpo") else "sft"
    return verb, load_config(VERBS[verb], RECIPES / f"{name}.yaml")


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_of_a_real_model_is_accepted_without_its_weights(name, console):
    verb, config = recipe(name)
    found = dry_run(config, METHODS[verb], console, processes=8)
    shown = console.export_text()
    base = next(size for model, size in PARAMETERS_B.items() if name.endswith(model))
    assert (found.parameters if not config.model.lora else found.parameters - found.trained_parameters) / 1e9 == (
        pytest.approx(base, rel=0.03)
    )
    assert found.active_parameters < found.parameters or ("a3b" not in name and "mini" not in name)
    for part in ("nothing was trained", "not checked", config.model.base, "GiB", "per process of 8", "per step"):
        assert part in shown
    assert "openai/gsm8k/main[train]" in shown or verb == "preference"


@pytest.mark.parametrize("name", NAMES)
def test_every_value_of_a_recipe_has_its_origin_beside_it(name):
    for line in (RECIPES / f"{name}.yaml").read_text().splitlines():
        key, _, value = line.partition(":")
        if line.startswith("#") or not value.strip() or key.strip() in ("output_dir", "algo", "base"):
            continue
        assert " # " in line, line


@pytest.mark.parametrize("name", NAMES)
def test_the_evaluation_of_a_recipe_scores_that_model(name, root, monkeypatch):
    from dare_train.follow_up import config_files

    monkeypatch.chdir(root)
    config = recipe(name)[1]
    assert any(config.model.base in path.read_text() for path, _ in config_files(Path(config.evaluation.config)))


def test_full_training_needs_more_than_adapters_and_shards_shrink_it(console):
    def needed(name, processes):
        verb, config = recipe(name)
        return dry_run(config, METHODS[verb], console, processes=processes)

    full, shards, adapters = needed("sft_llada_8b", 1), needed("sft_llada_8b", 8), needed("lora_llada_8b", 1)
    assert full.states_gib == pytest.approx(16 * full.parameters / 2**30, rel=1e-6), "weights, gradients, two moments"
    assert full.states_gib / 8 < shards.states_gib < full.states_gib / 6
    assert adapters.states_gib < 0.3 * full.states_gib and adapters.step_s < full.step_s
    assert shards.step_s == pytest.approx(full.step_s / 8, rel=0.7), "another measurement of this machine's speed"


def test_a_reference_copy_and_more_samples_are_counted(console):
    verb, config = recipe("vrpo_llada_8b")
    found = dry_run(config, METHODS[verb], console)
    assert found.states_gib == pytest.approx(20 * found.parameters / 2**30, rel=1e-6), "and the reference"
    more = config.model_copy(update={"preference": config.preference.model_copy(update={"times": 16})})
    other = dry_run(more, METHODS[verb], console)
    assert other.activations_gib == pytest.approx(found.activations_gib), "memory is flat in the samples"
    assert other.step_s > 2 * found.step_s


def test_adapter_sizes_are_those_that_would_be_added():
    from dare_train.adapters import add_lora
    from dare_train.draws import seeded
    from tests.train.test_scorer import network

    settings = LoraSettings(rank=4)
    net = network()
    counted = adapter_parameters(net, settings)
    sizes = Sizes.of(net.config, settings)
    add_lora(net, settings, seeded(0))
    added = sum(p.numel() for p in net.parameters() if p.requires_grad)
    assert counted == added == sizes.trained and sizes.all == sum(p.numel() for p in net.parameters())


def test_a_checkpoint_that_nobody_knows_is_refused(config):
    model = {"architecture": None, "tokenizer": None, "base": "someone/nothing"}
    with pytest.raises(DataError, match="neither a local folder nor reachable"):
        plan_here(config(model=model).model)
    with pytest.raises(DataError, match="did you mean 'tiny-sudoku'"):
        plan_here(config(model={**model, "base": "tiny-sudko"}).model)


def test_a_redirection_to_nothing_is_not_taken_for_an_absent_checkpoint(monkeypatch):
    monkeypatch.setenv("DARE_MODEL_LLADA_8B_INSTRUCT", "/nowhere/at/all")
    with pytest.raises(DataError, match="no model at"):
        plan_here(recipe("sft_llada_8b")[1].model)


def test_rows_out_of_reach_stop_a_run_but_not_its_plan(cli, settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings(data={"train": "someone/nothing[train]"})))
    planned = cli("dare-train", "sft", "--config", path, "--dry-run", env={"HF_HUB_OFFLINE": "1"})
    assert planned.returncode == 0, planned.stderr
    assert "not checked" in planned.stdout and "each 4,096 tokens at most" in planned.stdout
    started = cli("dare-train", "sft", "--config", path, env={"HF_HUB_OFFLINE": "1"})
    assert started.returncode == 4 and "cannot be reached" in started.stderr


@pytest.mark.parametrize("text", ["nowhere.jsonl", "ROWS", "puzzles/sudokku"])
def test_local_rows_are_looked_at_also_without_a_tokenizer(text, rows_file, console):
    _, config = recipe("sft_llada_8b")  # its fields are 'question' and 'answer'
    data = config.data.model_copy(update={"train": text.replace("ROWS", str(rows_file))})
    with pytest.raises(DareError, match=r"does not exist|'question' is missing|unknown puzzle"):
        dry_run(config.model_copy(update={"data": data}), METHODS["sft"], console)


def test_uneven_batches_are_refused(config, console):
    with pytest.raises(UsageError, match="not a multiple"):
        dry_run(config(), METHODS["sft"], console, processes=4)


@pytest.mark.parametrize(("name", "hint"), [("puzles", "did you mean 'puzzles'"), ("nowhere", "no model at 'nowhere'")])
def test_a_tokenizer_that_nobody_knows_is_answered(config, console, name, hint):
    with pytest.raises(DataError, match=hint) as caught:
        dry_run(config(model={"tokenizer": name}), METHODS["sft"], console)
    assert "puzzles, list_ops (built in)" in str(caught.value)


def test_a_batch_beyond_all_memory_is_refused_before_a_folder_is_made(cli, settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings(train={"batch_size": 10**9})))
    done = cli("dare-train", "sft", "--config", path)
    assert done.returncode == 5 and "more memory than this machine has" in done.stderr
    assert "train.micro_batch_size" in done.stderr and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        (DataSettings(train="a", max_length=7), 7),
        (PairSettings(train="a", max_length=7), 14),
        (TextSettings(train="a", sequence_length=9), 9),
    ],
)
def test_rows_that_cannot_be_read_are_planned_at_their_greatest_length(settings, tokens):
    assert assumed_rows(settings).row_tokens == assumed_rows(settings).answer_tokens == tokens


def test_amounts_and_times_read_well():
    assert (amount(17.67), amount(0.05)) == ("17.7 GiB", "51.2 MiB")
    assert (duration(0.024), duration(90), duration(600), duration(9000), duration(1e7)) == (
        "0.024 s",
        "90 s",
        "10 min",
        "2.5 h",
        "116 days",
    )
