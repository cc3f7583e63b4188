"""Planned forwards against the forwards that decoding really takes, for every policy and cache of two layouts."""

from __future__ import annotations

import pytest
import torch

from dare_eval.decoding import decode
from dare_eval.errors import UsageError
from dare_eval.networks import build_network
from dare_eval.report.forwards import BUDGETED, passes_per_block, work
from dare_eval.runtime.sweep_grid import expand, parse_grid
from dare_eval.spec import DecodeSpec

SIZES = {"d_model": 16, "n_layers": 1, "n_heads": 2, "mlp_hidden_size": 32, "max_sequence_length": 64}
IDS = {"vocab_size": 40, "mask_token_id": 1, "pad_token_id": 0, "eos_token_id": 2}
PROMPT = [5, 6, 7, 8, 9, 10, 11, 12]


@pytest.fixture(scope="module")
def network():
    config = {"model_type": "llada", "architectures": ["LLaDAModelLM"], "rope_theta": 10000.0, **SIZES, **IDS}
    return build_network(config, generator=torch.Generator().manual_seed(3)).eval()


def specs(family, base):
    for setting in expand(base, parse_grid({"policy": "all", "cache": "none,prefix,dual", "steps": "16,8,4"}, [])):
        try:
            yield DecodeSpec.build(family, **setting.decoding)
        except UsageError:
            continue


@pytest.mark.parametrize("block", [16, 4])
def test_bounds_hold_for_every_policy_and_cache_and_are_exact_with_a_step_budget(network, block):
    found = list(specs("llada", {"gen_length": 16, "block_length": block}))
    assert len({(spec.policy, spec.cache) for spec in found}) > 30
    for spec in found:
        [result] = decode(network, [PROMPT], spec, row_seeds=[0])
        least, most = work(spec, len(PROMPT))
        assert least.nfe <= result.nfe <= most.nfe, spec
        if spec.policy in BUDGETED:
            assert least.nfe == result.nfe == most.nfe, spec


def test_block_causal_layout_counts_prefill_and_the_pass_that_stores_a_block():
    spec = DecodeSpec.build("sdar", gen_length=16, block_length=4, steps=8, cache="block", early_stop="none")
    least, most = work(spec, 8)
    assert least == most and most.nfe == 1 + 4 * (2 + 1)
    assert most.columns == 8 + 4 * (2 * 4 + 4)
    assert work(DecodeSpec.build("sdar", gen_length=16, block_length=4, steps=8, cache="block"), 8)[0].nfe == 1 + 3


def test_caches_save_columns_in_the_known_order():
    def columns(cache):
        return work(DecodeSpec.build("llada", gen_length=64, block_length=16, steps=64, cache=cache), 64)[1].columns

    assert columns("none") == 64 * 128
    assert columns("dual") == 4 * (128 + 15 * 16)
    assert columns("dual") < columns("prefix") < columns("none")


def test_ascending_and_least_transfer():
    ass = DecodeSpec.build("llada", gen_length=16, block_length=16, schedule="ascending")
    assert passes_per_block(ass) == (4, 4)
    edited = DecodeSpec.build(
        "llada2", gen_length=64, block_length=32, policy="dynamic", threshold=0.9, min_transfer=4, edit_threshold=0.9
    )
    assert passes_per_block(edited) == (1, 8 + 16)
