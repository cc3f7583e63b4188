from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import pytest

from dare_eval.errors import DataError, UsageError
from dare_eval.networks import make_config, read_config, resolve_model_path, save_network
from dare_eval.spec import FAMILIES
from tests.networks.helpers import network_of
from tests.networks.shapes import ALL, DREAM, LLADA, LLADA2, LLADA_MOE, SDAR, SDAR_MOE


def test_families_state_what_sets_them_apart():
    configs = {name: make_config(raw) for name, raw in ALL.items()}
    assert {name: config.family for name, config in configs.items()} == {name: name for name in ALL}
    assert [name for name, config in configs.items() if config.shift] == ["dream"]
    assert {name: config.block_length for name, config in configs.items()} == {
        "llada": None,
        "dream": None,
        "llada_moe": None,
        "sdar": 4,
        "sdar_moe": 4,
        "llada2": 4,
    }
    assert [name for name, config in configs.items() if config.fused_qkv] == ["llada2"]
    assert configs["llada2"].rotary_dim == 4 and configs["llada2"].head_dim == 8
    assert configs["llada2"].moe.sparse_layers == (False, True)


def test_published_defaults_stand_in_for_what_a_config_leaves_out():
    big = {"vocab_size": 157184}
    llada2 = {key: value for key, value in LLADA2.items() if not key.endswith("token_id") and key != "block_size"} | big
    config = make_config(llada2)
    assert (config.mask_id, config.pad_id, config.eos_id, config.block_length) == (156895, 156892, 156892, 32)
    sdar = {key: value for key, value in SDAR_MOE.items() if not key.endswith("token_id") and key != "block_size"}
    config = make_config(sdar | {"vocab_size": 151936})
    assert (config.mask_id, config.eos_id, config.eot_id, config.block_length) == (151669, 151643, 151645, 4)
    assert config.stop_ids == (151643, 151645)


def test_token_ids_come_from_the_tokenizer_when_config_is_silent(tmp_path):
    raw = {key: value for key, value in LLADA.items() if not key.endswith("token_id")}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    tokens = {"37": "<mask>", "36": "<eos>", "35": "<|eot_id|>", "34": "<pad>"}
    declared = {
        "mask_token": "<mask>",
        "eos_token": {"content": "<eos>"},
        "pad_token": "<pad>",
        "added_tokens_decoder": {number: {"content": text} for number, text in tokens.items()},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(declared))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [36, 33]}))
    config = read_config(tmp_path)
    assert (config.mask_id, config.eos_id, config.pad_id, config.eot_id) == (37, 36, 34, 35)
    assert config.stop_ids == (36, 33, 35)


def test_token_ids_come_from_tokenizer_json_too(tmp_path):
    raw = {key: value for key, value in LLADA.items() if key != "mask_token_id"}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"mask_token": "<mask>"}))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"id": 31, "content": "<mask>"}]}))
    assert read_config(tmp_path).mask_id == 31


def test_overrides_win_and_are_named():
    assert make_config(LLADA, token_ids={"mask_id": 7}).mask_id == 7
    with pytest.raises(UsageError, match="did you mean 'mask_id'"):
        make_config(LLADA, token_ids={"maskid": 7})


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"pad_token_id": 39}, UsageError, ["pad_token_id and mask_token_id are both 39"]),
        ({"mask_token_id": 40}, UsageError, ["outside the vocabulary", "0 .. 39"]),
        ({"eos_token_id": 99, "pad_token_id": 1}, DataError, ["eos_id", "99", "0 .. 39"]),
        ({"model_type": "lada", "architectures": []}, UsageError, ["did you mean 'llada'", "dare.families"]),
        ({"activation_type": "gelu"}, DataError, ["activation_type", "gelu", "silu"]),
        ({"alibi": True}, DataError, ["alibi", "True"]),
        ({"rope_scaling": {"factor": 2}}, DataError, ["rope_scaling"]),
        ({"n_kv_heads": 3}, UsageError, ["multiple", "3 key/value heads"]),
        ({"n_layers": 0}, DataError, ["layers", "above 0"]),
        ({"block_size": -1}, DataError, ["block_size", "-1"]),
        ({"d_model": "wide"}, DataError, ["wrong type", "'wide'"]),
        ({"d_model": 18, "n_heads": 6, "n_kv_heads": None}, UsageError, ["odd number", "3 dimensions"]),
    ],
)
def test_what_cannot_work_is_refused_with_key_value_and_remedy(change, error, words):
    with pytest.raises(error) as caught:
        make_config(LLADA | change)
    for word in words:
        assert word in str(caught.value)


def test_a_missing_mask_token_is_refused():
    raw = {key: value for key, value in LLADA.items() if key != "mask_token_id"}
    with pytest.raises(UsageError, match="no mask token"):
        make_config(raw)


def test_a_missing_size_is_named():
    raw = {key: value for key, value in DREAM.items() if key != "hidden_size"}
    with pytest.raises(DataError, match="lacks 'hidden_size'"):
        make_config(raw)


@pytest.mark.parametrize("content", ["", "{", "[1]", "\xff"])
def test_a_broken_config_file_is_named(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=r"config\.json"):
        read_config(tmp_path)


def test_a_folder_without_config_is_named(tmp_path):
    with pytest.raises(DataError, match=r"config\.json is missing"):
        read_config(tmp_path)


def test_rope_base_is_read_in_both_spellings():
    new = {key: value for key, value in SDAR.items() if key not in ("rope_theta", "rope_scaling")}
    assert make_config(new | {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}).rope_theta == 5e5
    with pytest.raises(DataError, match="rope_type"):
        make_config(new | {"rope_parameters": {"rope_theta": 5e5, "rope_type": "yarn"}})


def test_a_tokenizer_larger_than_the_embedding_is_refused():
    config = make_config(LLADA)
    config.check_tokenizer(40)
    with pytest.raises(DataError, match="41 tokens, vocab_size 40"):
        config.check_tokenizer(41)


def test_configs_survive_copy_and_pickle():
    for raw in ALL.values():
        config = make_config(raw)
        assert pickle.loads(pickle.dumps(config)) == config == copy.deepcopy(config)


@pytest.mark.parametrize(
    "family",
    [name for name in FAMILIES.names() if name in ALL],
)
def test_chat_templates_render_the_published_shape(family):
    from jinja2 import Environment

    chat = [{"role": "user", "content": "2+2?"}]
    text = (
        Environment()
        .from_string(FAMILIES.get(family).chat_template)
        .render(messages=chat, bos_token="<B>", add_generation_prompt=True)
    )
    assert (
        text
        == {
            "llada": "<B><|start_header_id|>user<|end_header_id|>\n\n2+2?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
            "dream": "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n",
            "sdar": "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n",
            "sdar_moe": "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n",
            "llada2": "<role>SYSTEM</role>detailed thinking off<|role_end|><role>HUMAN</role>2+2?<|role_end|>"
            "<role>ASSISTANT</role>",
            "llada_moe": "<role>SYSTEM</role>detailed thinking off<|role_end|><role>HUMAN</role>2+2?<|role_end|>"
            "<role>ASSISTANT</role>",
        }[family]
    )


def test_moe_layers_follow_the_config():
    assert make_config(LLADA_MOE).moe.sparse_layers == (False, True)
    assert make_config(SDAR_MOE | {"mlp_only_layers": [1]}).moe.sparse_layers == (True, False)
    assert make_config(SDAR_MOE | {"decoder_sparse_step": 2}).moe.sparse_layers == (False, True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_group": 3}, "8 experts, n_group = 3"),
        ({"topk_group": 1, "num_experts_per_tok": 3}, "1 .. 2 experts"),
        ({"topk_group": 5}, "topk_group from 1 to n_group"),
        ({"num_experts_per_tok": 9, "topk_group": 4}, "num_experts_per_tok = 9"),
    ],
)
def test_a_routing_that_cannot_be_carried_out_is_refused(change, words):
    with pytest.raises(DataError, match=words):
        make_config(LLADA2 | change)


def test_a_model_is_found_by_folder_variable_or_not_at_all(tmp_path, monkeypatch):
    save_network(network_of(LLADA), tmp_path / "here")
    assert resolve_model_path(str(tmp_path / "here")) == tmp_path / "here"
    monkeypatch.setenv("DARE_MODEL_LLADA_8B_INSTRUCT", str(tmp_path / "here"))
    assert resolve_model_path("GSAI-ML/LLaDA-8B-Instruct") == tmp_path / "here"
    assert resolve_model_path("llada-8b-instruct") == tmp_path / "here"
    monkeypatch.setenv("DARE_MODEL_LLADA_8B_INSTRUCT", str(tmp_path / "gone"))
    with pytest.raises(DataError, match="correct or unset DARE_MODEL_LLADA_8B_INSTRUCT"):
        resolve_model_path("llada-8b-instruct")


def test_an_unreachable_hub_id_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError) as caught:
        resolve_model_path("no-such-owner/no-such-model")
    assert "DARE_MODEL_NO_SUCH_OWNER_NO_SUCH_MODEL" in str(caught.value)


def test_naming_a_family_or_reading_a_config_does_not_load_torch(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLADA2))
    code = (
        "import sys; from dare_eval.networks import read_config; from dare_eval.spec import FAMILIES;"
        f"config = read_config({str(tmp_path)!r}); [FAMILIES.get(name) for name in FAMILIES.names()];"
        "assert config.family == 'llada2'; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
