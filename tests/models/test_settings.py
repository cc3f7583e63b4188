"""What a wrapper's settings may be, for every kind of network, without a run around them."""

from __future__ import annotations

import dataclasses

import pytest

from dare_eval.commands.plan_rows import Subject
from dare_eval.errors import SetupError, UsageError
from dare_eval.models.settings import check_attention, check_device, check_dtype, context_limit, place_of
from dare_eval.networks import read_config
from dare_eval.spec import DecodeSpec


@pytest.fixture(scope="module")
def config():
    return read_config("tiny-sudoku")


@pytest.mark.parametrize("device", ["auto", "spread", "cpu", "cuda", "cuda:1", "mps", "xpu:0"])
def test_devices(device):
    check_device(device)


@pytest.mark.parametrize("device", ["", "gpu", "auto:1", "cuda:", "cuda:-1", None, 0])
def test_devices_that_no_machine_has(device):
    with pytest.raises(UsageError, match="device"):
        check_device(device)


def test_place_of_a_device_says_what_is_there():
    assert place_of("cpu") == "cpu"
    assert place_of("auto").partition(":")[0] in ("cpu", "cuda")
    with pytest.raises(SetupError, match=r"cuda:99(.|\n)*auto"):
        place_of("cuda:99")


def test_backends_without_arbitrary_masks_do_not_serve_block_causal_networks(config):
    blocks = dataclasses.replace(config, block_length=4)
    for backend in ("auto", "sdpa", "flex"):
        check_attention(backend, blocks)
    check_attention("varlen", config)
    for backend in ("varlen", "flash_attention_2"):
        with pytest.raises(UsageError, match="block-causal"):
            check_attention(backend, blocks)


def test_dtypes():
    for dtype in ("auto", "float32", "bfloat16", "float16", "float64"):
        check_dtype(dtype)
    with pytest.raises(UsageError, match="bfloat16"):
        check_dtype("bfloat")


def test_context_limit_is_the_smallest_of_all_and_leaves_room_for_a_prompt(config):
    assert context_limit(None, config, None) == 64
    assert context_limit(24, config, None) == 24
    assert context_limit(10**6, config, None) == 64
    assert context_limit(None, dataclasses.replace(config, learned_positions=40), None) == 40
    spec = DecodeSpec.build("llada", gen_length=16, block_length=8)
    assert context_limit(17, config, spec) == 17
    with pytest.raises(UsageError, match=r"gen_length 16 leaves no room(.|\n)*gen_length = 8"):
        context_limit(16, config, spec)
    for wrong in (0, -1, 2.5, True, "8"):
        with pytest.raises(UsageError, match="max_seq_len"):
            context_limit(wrong, config, spec)


def test_a_block_that_is_longer_than_the_context_is_named(config):
    spec = DecodeSpec.build("llada", gen_length=128, block_length=128)
    with pytest.raises(UsageError, match=r"block_length 128 is longer than the context(.|\n)*context 64 tokens"):
        context_limit(None, dataclasses.replace(config, block_length=4), spec)


def test_a_block_causal_network_has_room_for_whole_blocks_only(config):
    blocks = dataclasses.replace(config, block_length=4)
    spec = DecodeSpec.build("sdar", gen_length=8, block_length=6)
    assert context_limit(None, blocks, spec) == 60
    assert context_limit(62, blocks, spec) == 60
    assert context_limit(59, blocks, spec) == 59
    assert context_limit(None, config, DecodeSpec.build("llada", gen_length=6, block_length=6)) == 64
    assert Subject(blocks, spec, {}, None).limit == 60
    with pytest.raises(UsageError, match=r"gen_length 58(.|\n)*context 58 tokens(.|\n)*gen_length = 29"):
        context_limit(None, blocks, DecodeSpec.build("sdar", gen_length=58, block_length=29))
    with pytest.raises(UsageError, match=r"blocks of at most 64 tokens(.|\n)*gen_length = block_length = 32"):
        context_limit(None, blocks, DecodeSpec.build("sdar", gen_length=8, block_length=65))
