from __future__ import annotations

import warnings

import pytest
import torch

from dare_eval.errors import UsageError
from dare_eval.networks import AttentionMask, load_network, save_network
from tests.networks.helpers import ids_of, left_padded, network_of
from tests.networks.shapes import ALL, LLADA

pytestmark = pytest.mark.xdist_group("transformers")
TARGETS = {
    "llada": ["q_proj", "ff_proj", "ff_out"],
    "dream": ["q_proj", "o_proj", "down_proj"],
    "sdar": ["q_proj", "gate_proj"],
    "sdar_moe": ["v_proj"],
    "llada_moe": ["k_proj"],
    "llada2": ["query_key_value", "dense"],
}


@pytest.fixture(scope="module")
def auto():
    import transformers

    from dare_eval.networks.auto import register

    register()
    return transformers


@pytest.mark.parametrize("family", sorted(ALL))
def test_auto_classes_open_every_family_without_remote_code(auto, family, tmp_path):
    network, ids = network_of(ALL[family]), ids_of(2, 9)
    save_network(network, tmp_path / "in")
    assert auto.AutoConfig.from_pretrained(tmp_path / "in").model_type == ALL[family]["model_type"]
    for opener in (auto.AutoModel, auto.AutoModelForCausalLM, auto.AutoModelForMaskedLM):
        model = opener.from_pretrained(tmp_path / "in").eval()
        with torch.no_grad():
            assert torch.equal(model(input_ids=ids).logits, network(ids))
    assert model.state_dict().keys() == network.state_dict().keys()
    model.save_pretrained(tmp_path / "out")
    again = load_network(str(tmp_path / "out"))
    with torch.no_grad():
        assert torch.equal(again(ids), network(ids))


@pytest.mark.parametrize("family", ["llada", "sdar"])
def test_a_padding_mask_means_what_it_means_to_the_network(auto, family, tmp_path):
    network, ids, keep = network_of(ALL[family]), ids_of(3, 9), left_padded(3, 9)
    save_network(network, tmp_path)
    mask = AttentionMask.padding(keep)
    if network.config.block_length:
        mask = AttentionMask.block_causal(9, network.config.block_length, keep_BS=keep, start_B=(~keep).sum(1))
    model = auto.AutoModel.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        assert torch.equal(model(input_ids=ids, attention_mask=keep.long()).logits, network(ids, mask=mask))
        dense = mask.dense(torch.arange(9)[None], 9)
        assert torch.equal(model(ids, attention_mask=dense).logits, network(ids, mask=dense))


def test_inputs_the_network_does_not_take_are_refused(auto, tmp_path):
    save_network(network_of(LLADA), tmp_path)
    model = auto.AutoModel.from_pretrained(tmp_path)
    with pytest.raises(UsageError, match="labels"):
        model(input_ids=ids_of(1, 4), labels=ids_of(1, 4))
    with pytest.raises(UsageError, match="no input_ids"):
        model()
    assert isinstance(model(ids_of(1, 4), return_dict=False), tuple)


def test_a_new_model_from_a_config_has_random_weights(auto, tmp_path):
    save_network(network_of(LLADA), tmp_path)
    model = auto.AutoModel.from_config(auto.AutoConfig.from_pretrained(tmp_path))
    assert 0.2 < model.get_input_embeddings().weight.detach().std().item() < 0.4
    assert model.get_output_embeddings() is model.network.at("model.transformer.ff_out")


@pytest.mark.parametrize("wrapped", [False, True], ids=["network", "auto"])
@pytest.mark.parametrize("family", sorted(ALL))
def test_adapters_find_the_original_leaf_names(auto, family, wrapped, tmp_path):
    from peft import LoraConfig, PeftModel, get_peft_model

    save_network(network_of(ALL[family]), tmp_path / "base")

    def base():
        opener = auto.AutoModel.from_pretrained if wrapped else load_network
        return opener(str(tmp_path / "base")).eval()

    def logits(model):
        out = model(input_ids=ids) if wrapped else model(ids)
        return out.logits if wrapped else out

    ids = ids_of(2, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = get_peft_model(base(), LoraConfig(r=2, target_modules=TARGETS[family], init_lora_weights=False))
        adapted.save_pretrained(tmp_path / "adapter")
        again = PeftModel.from_pretrained(base(), tmp_path / "adapter").eval()
    out = logits(adapted.eval())
    out.sum().backward()
    assert {key.split(".")[-4] for key, value in adapted.named_parameters() if value.grad is not None} <= set(
        TARGETS[family]
    )
    with torch.no_grad():
        assert not torch.allclose(out, logits(base()), atol=1e-2)
        assert torch.equal(logits(again), logits(adapted))
        merged = adapted.merge_and_unload()
        torch.testing.assert_close(logits(merged), out, atol=1e-3, rtol=1e-4)
    plain = merged.network if wrapped else merged
    save_network(plain, tmp_path / "merged")
    with torch.no_grad():
        assert torch.equal(load_network(str(tmp_path / "merged"))(ids), plain(ids))


def test_replacing_a_top_level_layer_reaches_the_network(auto, tmp_path):
    """``lm_head`` is a child of the wrapper itself; an adapter on it must not be bypassed."""
    from peft import LoraConfig, get_peft_model

    save_network(network_of(ALL["dream"]), tmp_path)
    model, ids = auto.AutoModel.from_pretrained(tmp_path).eval(), ids_of(1, 5)
    with torch.no_grad():
        before = model(ids).logits
        adapted = get_peft_model(model, LoraConfig(r=2, target_modules=["lm_head"], init_lora_weights=False))
        assert not torch.allclose(adapted(input_ids=ids).logits, before, atol=1e-2)


def test_gradient_checkpointing_is_switched_through(auto, tmp_path):
    save_network(network_of(LLADA), tmp_path)
    model = auto.AutoModel.from_pretrained(tmp_path)
    model.gradient_checkpointing_enable()
    assert model.network.gradient_checkpointing
    model(ids_of(1, 4)).logits.sum().backward()
    model.gradient_checkpointing_disable()
    assert not model.network.gradient_checkpointing
