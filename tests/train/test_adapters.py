"""LoRA: nothing changes at the start, only adapters train, files are PEFT's, merging gives the same network."""

from __future__ import annotations

import json

import pytest
import torch

from dare_eval.errors import DataError, UsageError
from dare_eval.networks import load_network, save_network
from dare_train.adapters import adapters_off, add_lora, has_adapters, save_adapter, target_pattern
from dare_train.algorithms.build import METHODS
from dare_train.config import LoraSettings
from dare_train.draws import seeded
from dare_train.run import run
from tests.train.test_loop import quiet
from tests.train.test_scorer import network

SETTINGS = LoraSettings(rank=4, alpha=8)
IDS = torch.tensor([[3, 7, 1, 9, 1, 4]])


def adapted(seed=1):
    net = network().float()
    add_lora(net, SETTINGS, seeded(seed))
    return net


def changed(net):
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if ".lora_B." in name:
                parameter.copy_(torch.randn(parameter.shape, generator=seeded(7)) * 0.1)
    return net


def test_a_new_adapter_changes_nothing_and_leaves_global_randomness_alone():
    before, plain = torch.get_rng_state(), network().float()(IDS)
    net = adapted()
    assert torch.equal(net(IDS), plain)
    assert torch.equal(torch.get_rng_state(), before)
    weights = {name: p for name, p in net.named_parameters() if ".lora_A." in name}
    other = dict(adapted(seed=2).named_parameters())
    assert all(torch.equal(dict(adapted().named_parameters())[name], p) for name, p in weights.items())
    assert not any(torch.equal(other[name], p) for name, p in weights.items())


def test_only_adapters_of_the_layers_train_and_the_head_is_spared():
    net = adapted()
    trained = {name for name, p in net.named_parameters() if p.requires_grad}
    assert trained and all(".lora_" in name and ".blocks." in name for name in trained)
    assert len(trained) == 2 * 2 * 7, "two matrices for each of seven projections in two layers"
    with pytest.raises(UsageError, match="q_proj"):
        target_pattern(network(), ("q_porj",))
    assert "q_proj" in target_pattern(network(), ("q_proj",))


def test_switched_off_it_is_the_base():
    net, plain = changed(adapted()), network().float()(IDS)
    assert not torch.allclose(net(IDS), plain, atol=1e-3)
    with adapters_off(net):
        assert torch.equal(net(IDS), plain)
    assert not torch.allclose(net(IDS), plain, atol=1e-3)
    assert has_adapters(net) and not has_adapters(network())
    assert all(p.requires_grad == (".lora_" in name) for name, p in net.named_parameters())


@pytest.fixture
def saved(tmp_path):
    save_network(network().float(), tmp_path / "base")
    net = changed(adapted())
    save_adapter(net, tmp_path / "adapter", SETTINGS, str(tmp_path / "base"))
    return net, tmp_path / "adapter"


def test_opened_adapter_is_the_trained_network(saved):
    net, folder = saved
    torch.testing.assert_close(load_network(str(folder))(IDS), net(IDS), rtol=1e-5, atol=1e-5)


def test_an_adapter_in_its_base_s_place_does_not_look_for_itself(saved, monkeypatch):
    net, folder = saved
    (folder / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "base_model_name_or_path": str(folder.parent / "base"), "lora_alpha": 8})
    )
    name = "DARE_MODEL_" + "".join(c if c.isalnum() else "_" for c in str(folder.parent / "base").upper())
    monkeypatch.setenv(name, str(folder))
    torch.testing.assert_close(load_network(str(folder.parent / "base"))(IDS), net(IDS), rtol=1e-5, atol=1e-5)


def test_peft_reads_the_files(saved):
    from peft import PeftModel
    from transformers import AutoModel

    from dare_eval.networks.auto import register

    net, folder = saved
    register()
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(folder.parent / "base"), folder).eval()
    torch.testing.assert_close(model(input_ids=IDS).logits, net(IDS), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"use_dora": True}, "not supported"),
        ({"peft_type": "IA3"}, "not supported"),
        ({"base_model_name_or_path": None}, "does not name its base"),
    ],
)
def test_adapters_that_are_more_than_low_rank_are_refused(saved, change, part):
    _, folder = saved
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match=part):
        load_network(str(folder))


def test_an_adapter_of_another_base_is_refused(saved, tmp_path):
    _, folder = saved
    save_network(network(d_model=32, mlp_hidden_size=64).float(), tmp_path / "other")
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "base_model_name_or_path": str(tmp_path / "other")}))
    (folder / "config.json").unlink()
    with pytest.raises(DataError, match="does not fit its base"):
        load_network(str(folder))


def test_supervised_training_of_an_adapter_resumes_and_exports_it_alone(config, tmp_path):
    base = run(config(), METHODS["sft"], quiet())
    model = {"architecture": None, "tokenizer": None, "base": str(base.model), "lora": {"rank": 4}}
    folder = run(config(output_dir=str(tmp_path / "lora"), model=model), METHODS["sft"], quiet())
    longer = config(output_dir=str(tmp_path / "lora"), model=model, train={"max_steps": 6})
    assert run(longer, METHODS["sft"], quiet()).checkpoint.name == "step_00000006"
    assert not (folder.model / "model.safetensors").exists()
    before, after = (load_network(str(place))(IDS) for place in (base.model, folder.model))
    assert not torch.allclose(before, after, atol=1e-4)
