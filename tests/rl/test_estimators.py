"""The estimator report: unbiased where it says so, spreads fall with rows, the choice meets the target."""

from __future__ import annotations

import json

import pytest

from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec
from dare_train.rl.estimator_report import Bench, Quality, choose_rows
from dare_train.rl.estimators_run import read_counts, run_report
from dare_train.rl.records import trajectory_of
from dare_train.rl.rewards import Outcome
from dare_train.scorer import Scorer
from tests.rl.test_rollout import SPEC, sampler_of


def bench_of(parts, spec, count=6):
    rows = sampler_of(parts, spec, group_size=1).groups(list(enumerate(parts[2][:count])), states=False)
    trajectories = [trajectory_of(row, Outcome(reward=0.0), spec, states=False) for row in rows]
    scorer = Scorer(block_length=parts[0].config.block_length)
    return Bench(network=parts[0], scorer=scorer, trajectories=trajectories)


def test_masked_estimators(tiny):
    found = bench_of(tiny, DecodeSpec.build("llada", **SPEC)).measure([1, 2, 4, 8], 64)
    by = {(quality.estimator, quality.rows): quality for quality in found}
    assert {name for name, _ in by} == {
        "elbo", "elbo_count", "coupled_elbo", "coupled_token", "one_step", "left_to_right",
    }  # fmt: skip
    for name in ("elbo_count", "coupled_elbo"):
        quality = by[name, 8]
        assert abs(quality.bias) < 5 * (quality.std / (64 * 6) ** 0.5) + 1e-3, f"{name} is unbiased"
        assert by[name, 8].std < by[name, 2].std, "more rows, less spread"
    assert by["elbo_count", 8].std < by["elbo", 8].std, "stratified counts spread less"
    assert by["one_step", 1].std == 0.0 and by["one_step", 1].bias < -0.1, "one step is no bound of the likelihood"
    assert by["left_to_right", 5].std == 0.0
    assert ("coupled_elbo", 1) not in by, "pairs need two rows"


def test_block_estimator(tiny_blocks):
    spec = DecodeSpec.build("sdar", gen_length=8, block_length=4, steps=6, temperature=1.0, cache="block")
    found = bench_of(tiny_blocks, spec).measure([1, 4], 24)
    assert [quality.estimator for quality in found] == ["block_elbo", "block_elbo"]
    assert found[1].std < found[0].std
    assert abs(found[1].bias) < 5 * found[1].std / (24 * 6) ** 0.5 + 0.3


def test_choice_of_rows():
    def quality(rows, std, name="elbo"):
        return Quality(estimator=name, rows=rows, bias=0.0, bias_error=0.0, std=std, tokens=5.0)

    found = [quality(1, 4.0), quality(2, 2.8), quality(4, 2.0), quality(1, 9.0, "one_step")]
    assert choose_rows(found, 3.0) == {"elbo": 2}
    assert choose_rows(found, 1.0) == {"elbo": 16}, "variance falls as 1/rows"
    assert read_counts("4, 1,4") == [1, 4]
    for text in ("", "0", "x", "1.5"):
        with pytest.raises(UsageError, match="cannot be read"):
            read_counts(text)


def test_a_result_that_cannot_be_kept_is_told_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    for output in (tmp_path, tmp_path / "file" / "x.json"):
        with pytest.raises(UsageError, match="cannot be written"):
            run_report("no-model", None, [], rows="1", responses=2, repeats=2, target_std=1.0, output=output)
    with pytest.raises(UsageError, match="numbers of rows"):
        run_report("no-model", None, [], rows="0", responses=2, repeats=2, target_std=1.0, output=None)


def test_command_prints_the_table_and_the_choice(cli, tmp_path):
    output = tmp_path / "quality.json"
    arguments = ["--responses", 4, "--repeats", 6, "--rows", "1,2", "--output", output]
    done = cli("dare-train", "estimators", "tiny-countdown", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("elbo_count", "left_to_right", "spread", "rows for a spread of at most 1 nats"):
        assert part in done.stdout
    record = json.loads(output.read_text())
    assert record["rows"]["elbo"] >= 1 and len(record["quality"]) == 2 + 2 + 1 + 1 + 1 + 1
    assert cli("dare-train", "estimators", "tiny-countdwn").returncode == 4
