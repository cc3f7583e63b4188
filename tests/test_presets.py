"""The preset table is complete, and each row is a decode specification that can run."""

from __future__ import annotations

import pytest

from dare_eval import presets
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec

FAMILY = {"LLaDA": "llada", "Dream": "dream", "SDAR": "sdar", "LLaDA2": "llada2"}


def family(model: str) -> str:
    wrapper = presets.entry(model)["wrapper"].removesuffix("BaseModel").removesuffix("Model")
    return FAMILY[wrapper]


@pytest.mark.parametrize("model", presets.models())
def test_every_row_is_a_valid_spec_with_a_source(model):
    benchmarks = [*presets.entry(model)["rows"], "math500", "winogrande"]
    for benchmark in benchmarks:
        preset = presets.find(model, benchmark)
        spec = DecodeSpec.build(family(model), **preset.decoding)
        assert spec.gen_length >= spec.block_length
        assert preset.source
        assert preset.score is None or 0 <= preset.score <= 100


def test_settings_given_beside_a_preset_win():
    bound = presets.bind({"preset": "llada-8b-instruct", "cache": "dual", "block_length": 32}, "gsm8k")
    assert bound == {
        "policy": "quota", "temperature": 0.0, "cache": "dual", "gen_length": 256, "block_length": 32, "steps": 256,
    }  # fmt: skip


def test_subset_borrows_settings_but_not_the_score():
    whole, subset = presets.find("llada-1.5", "math"), presets.find("llada-1.5", "math500")
    assert subset.decoding == whole.decoding
    assert whole.score == 42.3 and subset.score is None
    assert "math" in subset.source


def test_unknown_model_names_the_nearest():
    with pytest.raises(UsageError, match="llada-8b-instruct"):
        presets.find("llada-8b-instrct", "gsm8k")


def test_preset_without_a_benchmark_is_refused():
    with pytest.raises(UsageError, match=r"llada-1\.5"):
        presets.bind({"preset": "llada-1.5"}, None)
    assert presets.bind({"gen_length": 4}, None) == {"gen_length": 4}
