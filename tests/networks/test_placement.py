from __future__ import annotations

import sys

import pytest
import torch

from dare_eval.errors import SetupError, UsageError
from dare_eval.networks import load_network, save_network
from dare_eval.networks.placement import device_of, layer_placement, resolve_device_map
from tests.networks.helpers import ids_of, network_of
from tests.networks.shapes import ALL, DREAM, LLADA

PREFIX = "model.transformer"


def test_the_longest_prefix_of_a_device_map_wins():
    network = network_of(LLADA)
    places = resolve_device_map(network, {"": "cpu", f"{PREFIX}.blocks": "meta", f"{PREFIX}.blocks.1": "cpu"}, "cpu")
    assert device_of(places, f"{PREFIX}.blocks.0.q_proj.weight").type == "meta"
    assert device_of(places, f"{PREFIX}.blocks.1.q_proj.weight").type == "cpu"
    assert device_of(places, f"{PREFIX}.wte.weight").type == "cpu"


def test_a_device_map_must_name_parts_that_exist_and_cover_all():
    network = network_of(LLADA)
    with pytest.raises(UsageError, match="no part of the network"):
        resolve_device_map(network, {"": "cpu", "model.layers.0": "cpu"}, "cpu")
    with pytest.raises(UsageError, match="without a device"):
        resolve_device_map(network, {f"{PREFIX}.wte": "cpu"}, "cpu")


def test_without_a_gpu_auto_is_the_cpu(tmp_path):
    save_network(network_of(LLADA), tmp_path)
    network = load_network(str(tmp_path), device_map="auto")
    assert network.placement is None or torch.cuda.is_available()


def test_auto_spreads_layers_by_free_memory(monkeypatch):
    network = network_of(DREAM | {"num_hidden_layers": 8})
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda gpu: ([30, 10][gpu.index], 80))
    places = resolve_device_map(network, "auto", "cpu")
    layers = [device_of(places, f"model.layers.{i}.mlp.up_proj.weight").index for i in range(8)]
    assert layers == [0] * 6 + [1] * 2
    assert device_of(places, "lm_head.weight").index == device_of(places, "model.norm.weight").index == 1
    assert device_of(places, "model.embed_tokens.weight").index == 0


@pytest.mark.parametrize("family", sorted(ALL))
def test_hidden_states_follow_their_layers(family, tmp_path):
    """``cpu:0`` and ``cpu`` name the same memory but are different devices to torch: every move is made for real."""
    network, ids = network_of(ALL[family]), ids_of(2, 8)
    save_network(network, tmp_path)
    layers = network.config.names.layers
    spread = load_network(str(tmp_path), device_map={"": "cpu", f"{layers}.1": "cpu"})
    spread.placement = [torch.device("cpu"), torch.device("cpu", 0), torch.device("cpu")]
    cache = spread.new_cache(2, 8)
    with torch.no_grad():
        assert torch.equal(spread(ids), network(ids))
        torch.testing.assert_close(spread(ids, cache=cache), network(ids), atol=2e-5, rtol=1e-5)


def test_norm_and_head_stand_together():
    network = network_of(DREAM)
    network.at("lm_head").to("meta")
    with pytest.raises(UsageError, match="final norm and the head"):
        layer_placement(network)
    network.at("model.norm").to("meta")
    placement = layer_placement(network)
    assert [device.type for device in placement] == ["cpu", "cpu", "meta"]


def test_four_bit_loading_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    save_network(network_of(LLADA), tmp_path)
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(SetupError, match=r"dare\[quant\]"):
        load_network(str(tmp_path), quantize="4bit")
    with pytest.raises(UsageError, match="did you mean '4bit'"):
        load_network(str(tmp_path), quantize="4-bit")


@pytest.mark.parametrize("family", sorted(ALL))
def test_four_bit_loading_keeps_the_network_close(family, tmp_path):
    pytest.importorskip("bitsandbytes", reason="extra 'quant' is not installed")
    wide = {"mlp_hidden_size": 128, "d_model": 64, "n_heads": 4}
    wide |= {"hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 64, "expert_intermediate_size": 64}
    network = network_of(ALL[family] | wide | ({"head_dim": 16} if "head_dim" in ALL[family] else {}))
    save_network(network, tmp_path / "full")
    packed, ids = load_network(str(tmp_path / "full"), quantize="4bit"), ids_of(2, 8)
    kinds = [type(module).__name__ for module in packed.layers.modules()]
    assert kinds.count("Linear4bit") >= 8
    with torch.no_grad():
        pair = torch.stack((packed(ids).flatten(), network(ids).flatten()))
    assert torch.corrcoef(pair)[0, 1] > 0.7
    with pytest.raises(UsageError, match="quantised"):
        save_network(packed, tmp_path / "out")
