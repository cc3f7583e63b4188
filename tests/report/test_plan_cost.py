"""Operations and memory against counts by hand, and against the bookkeeping of torch on a real forward."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dare_eval.commands.plan_rows import size_of
from dare_eval.errors import UsageError
from dare_eval.networks import build_network, make_config
from dare_eval.presets.sizes import published_config, sizes
from dare_eval.report.devices import DEVICES, Device, find_device
from dare_eval.report.forwards import Work
from dare_eval.report.plan_cost import Range, flops, hours, memory_gib
from tests.networks.published import CHECKPOINTS

DENSE = {
    "model_type": "llada", "d_model": 64, "n_layers": 2, "n_heads": 4, "mlp_hidden_size": 96, "vocab_size": 50,
    "max_sequence_length": 64, "mask_token_id": 1, "pad_token_id": 0, "eos_token_id": 2,
}  # fmt: skip


def test_operations_are_those_torch_counts():
    network = build_network(DENSE, generator=torch.Generator().manual_seed(0)).eval()
    columns = 24
    plain = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)  # torch does not count the fused one
    with plain, FlopCounterMode(display=False) as counter, torch.no_grad():
        network(torch.zeros(1, columns, dtype=torch.long) + 5)
    counted = flops(size_of(network.config), Work(1, columns, columns**2, columns))
    norms = 2 * columns * (2 * 2 + 1) * 64  # parameters of norms are no matrix products
    assert counted == pytest.approx(counter.get_total_flops(), abs=norms)


def test_experts_that_are_not_chosen_cost_no_operations():
    size = size_of(make_config(CHECKPOINTS["SDAR-30B-A3B-Chat"]["config"]))
    assert size.total == CHECKPOINTS["SDAR-30B-A3B-Chat"]["bytes"] // 2
    assert 2.5e9 < size.active < 3.3e9  # "A3B", embeddings and head aside


def test_published_sizes_are_those_of_the_files():
    assert set(sizes()) >= {"GSAI-ML/LLaDA-1.5", "JetLM/SDAR-4B-Chat", "inclusionAI/LLaDA2.0-mini"}
    assert size_of(published_config("GSAI-ML/LLaDA-8B-Base")).total == CHECKPOINTS["LLaDA-8B-Instruct"]["parameters"]
    dream = size_of(published_config("Dream-org/Dream-v0-Base-7B"))
    assert dream.total == CHECKPOINTS["Dream-v0-Instruct-7B"]["parameters"]
    assert size_of(published_config("JetLM/SDAR-30B-A3B-Chat")).total * 2 == CHECKPOINTS["SDAR-30B-A3B-Chat"]["bytes"]


def test_hours_fall_with_a_faster_device_and_never_below_reading_the_weights():
    size, one = size_of(make_config(DENSE)), Work(16, 160, 1600, 40)
    slow, fast = Device("slow", 1, 1, 10, 100), Device("fast", 1e9, 1e9, 10, 100)
    timed = hours(size, 64, 8, one, one, slow, "float32", False)
    assert timed.low < timed.high
    floor = hours(size, 64, 8, one, one, fast, "float32", False)
    assert floor.low * 3600 == pytest.approx(8 * 16 * size.active * 4 / 100e9)
    assert hours(size, 64, 8, one, one, slow, "float32", True).low == pytest.approx(2 * timed.low, rel=0.2)


def test_memory_holds_the_weights_and_grows_with_the_batch():
    size = size_of(make_config(DENSE))
    one, many = (memory_gib(size, batch, 64, 16, True, "bfloat16") for batch in (1, 8))
    assert one.low > size.total * 2 / 2**30 and one.low < one.high
    assert many.low > one.low and many.high > one.high


def test_ranges_add_and_devices_have_names():
    assert Range(1, 2) + Range(3, 4) == Range(4, 6)
    assert Range(1, 2).scaled(0.5, 2) == Range(0.5, 4)
    assert all(device.half_tflops >= device.single_tflops for device in DEVICES.values())
    with pytest.raises(UsageError, match="did you mean 'h100'"):
        find_device("h10")
