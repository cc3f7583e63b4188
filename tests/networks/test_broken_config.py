"""A config.json, generation_config.json or tokenizer file that cannot work is refused with file, key and value."""

from __future__ import annotations

import json
import math

import pytest
import torch

from dare_eval.errors import DataError, UsageError
from dare_eval.networks import build_network, make_config, read_config
from dare_eval.networks.families.base import Family, qwen_fields
from tests.networks.helpers import generator, ids_of
from tests.networks.shapes import ALL, DREAM, LLADA, LLADA2, LLADA_MOE, SDAR, SDAR_MOE

NAN, INF = math.nan, math.inf
NUMBERS = [
    *((raw, {"rope_theta": value}) for raw in (LLADA, DREAM) for value in (0, -1, NAN, INF, -INF, "x", True, [1])),
    *((raw, {"rms_norm_eps": value}) for raw in (LLADA, DREAM) for value in (-1, NAN, INF, "x", False)),
    *((LLADA2, {"routed_scaling_factor": value}) for value in (NAN, INF, -INF, "x")),
    *((raw, {"partial_rotary_factor": value}) for raw in (LLADA2, LLADA_MOE) for value in (2, -0.5, NAN, "x")),
    (LLADA, {"init_std": -0.1}),
    (DREAM, {"initializer_range": NAN}),
]
WHOLE = [
    *((LLADA, {"learned_positions": value}) for value in (-1, 0, "x", 2.5, True)),
    *((raw, {"block_size": value}) for raw in (LLADA, SDAR, LLADA2) for value in (0, -4, "x", 2.5, True)),
    *((LLADA2, {"num_experts_per_tok": value}) for value in (1.5, "2", True, 0)),
    *((SDAR_MOE, {"num_experts": value}) for value in (6.0, "6", [6])),
    *((LLADA2, {key: 0}) for key in ("n_group", "topk_group", "moe_intermediate_size")),
    *((LLADA2, {"num_shared_experts": value}) for value in (-1, 0.5)),
    (LLADA_MOE, {"shared_expert_intermediate_size": -8}),
    (LLADA_MOE, {"expert_intermediate_size": 2.5}),
    *((LLADA, {key: value}) for key in ("n_heads", "d_model", "n_layers", "n_kv_heads") for value in (0, True, "4")),
    *((LLADA, {key: 0}) for key in ("embedding_size", "max_sequence_length", "mlp_hidden_size")),
    *((DREAM, {key: 0}) for key in ("num_key_value_heads", "head_dim", "intermediate_size")),
]
LAYERS = [{"moe_layer_freq": value} for value in ([1], [0, 1, 1], [], 1, "01", [0, 2], [0, None])]


def said(change):
    return " ".join(f"{key}={value!r}" for key, value in change.items())


def refused(raw, change):
    with pytest.raises(DataError) as caught:
        make_config(raw | change)
    return str(caught.value)


@pytest.mark.parametrize(("raw", "change"), NUMBERS, ids=lambda part: said(part) if len(part) == 1 else None)
def test_numbers_that_make_every_logit_nan_are_refused(raw, change):
    [(key, value)] = change.items()
    message = refused(raw, change)
    assert key.removeprefix("rms_") in message and str(value) in message and "config.json" in message


@pytest.mark.parametrize(("raw", "change"), WHOLE, ids=lambda part: said(part) if len(part) == 1 else None)
def test_sizes_that_are_no_integers_above_zero_are_refused(raw, change):
    assert "above 0" in refused(raw, change)


@pytest.mark.parametrize("raw", [LLADA, DREAM, LLADA2, LLADA_MOE, SDAR_MOE], ids=lambda raw: raw["model_type"])
def test_more_layers_than_memory_are_refused_before_they_are_listed(raw):
    key = "n_layers" if "n_layers" in raw else "num_hidden_layers"
    message = refused(raw, {key: 10**12})
    assert key in message and "10,000" in message


@pytest.mark.parametrize("change", LAYERS, ids=said)
def test_the_layers_with_experts_are_given_one_by_one(change):
    message = refused(LLADA_MOE, change)
    assert "moe_layer_freq" in message and str(change["moe_layer_freq"]) in message and "2 entries" in message


@pytest.mark.parametrize("change", [{"rope_parameters": [1]}, {"rope_parameters": "x"}], ids=said)
def test_rotary_settings_that_are_no_mapping_are_refused(change):
    assert "rope_parameters" in refused(SDAR, change)


def test_an_absent_or_null_number_keeps_its_default():
    for key in ("rope_theta", "rope_parameters"):
        assert make_config({k: v for k, v in DREAM.items() if k != "rope_theta"} | {key: None}).rope_theta == 1e6
    assert make_config(LLADA2 | {"partial_rotary_factor": None}).rotary_dim == 8
    assert make_config(LLADA | {"n_kv_heads": None, "embedding_size": None}).kv_heads == 4
    assert make_config(LLADA | {"mlp_hidden_size": None, "mlp_ratio": 3}).ffn == 96
    assert make_config(LLADA | {"mlp_ratio": None}).ffn == 48
    assert make_config(LLADA_MOE | {"moe_layer_freq": None}).moe.sparse_layers == (True, True)
    assert make_config(LLADA2 | {"num_shared_experts": None}).moe.shared_ffn is None
    assert make_config(DREAM | {"rms_norm_eps": None, "initializer_range": None}).norm_eps == 1e-6
    optional = {"routed_scaling_factor": None, "first_k_dense_replace": None}
    assert make_config(LLADA2 | optional).moe.sparse_layers == (True,) * make_config(LLADA2).layers
    assert make_config(SDAR_MOE | {"decoder_sparse_step": None}) is not None


@pytest.mark.parametrize("factor", [0, 0.5, 1])
@pytest.mark.parametrize("family", ["llada2", "llada_moe"])
def test_the_share_of_rotating_channels_is_taken_as_stated(family, factor):
    """0 rotates nothing: a bidirectional network is then blind to order, whatever the weights."""
    raw = {key: value for key, value in ALL[family].items() if key != "block_size"}
    network = build_network(raw | {"partial_rotary_factor": factor, "block_size": None}, generator=generator())
    config = network.config
    assert config.rotary_dim == factor * config.head_dim
    ids = ids_of(1, 6)
    with torch.no_grad():
        logits, moved = network(ids), network(ids, positions_BT=torch.arange(6)[None] * 3)
    assert logits.isfinite().all()
    assert torch.equal(logits, moved) == (factor == 0)
    stated = {key: value for key, value in raw.items() if key != "partial_rotary_factor"}
    newer = stated | {"rope_parameters": {"partial_rotary_factor": factor}}
    assert make_config(newer).rotary_dim == config.rotary_dim


TOKEN_IDS = [
    *({"eos_token_id": value} for value in ([], "x", 38.0, True, [38, "x"], [[38]], {"a": 1})),
    *({"bos_token_id": value} for value in ("a", 1.0, [1], False)),
    *({"eot_token_id": value} for value in ("a", True)),
    *({"pad_token_id": value} for value in ("a", True, [38])),
    *({"mask_token_id": value} for value in ("39", 39.0, [39])),
]


@pytest.mark.parametrize("change", TOKEN_IDS, ids=said)
def test_what_is_no_token_id_is_refused(change):
    [(key, value)] = change.items()
    with pytest.raises(UsageError if key in ("mask_token_id", "pad_token_id") else DataError) as caught:
        make_config(LLADA | change)
    assert f"config.json gives no usable {key}" in str(caught.value) and repr(value) in str(caught.value)


@pytest.mark.parametrize("value", ["a", [[1]], [True], [], 1.5, {"a": 1}], ids=repr)
def test_what_is_no_token_id_in_generation_config_is_refused(tmp_path, value):
    message = file_refused(tmp_path, "generation_config.json", {"eos_token_id": value})
    assert "generation_config.json gives no usable eos_token_id" in message and repr(value) in message


@pytest.mark.parametrize(
    "change",
    [{"eos_token_id": 39}, {"eos_token_id": [38, 39]}, {"eot_token_id": 39}],
    ids=said,
)
def test_a_mask_token_that_would_end_a_response_is_refused(change):
    message = refused(LLADA, change)
    assert "ends a response" in message and "mask_token_id = 39" in message and "eos_token_id" in message


def test_a_mask_token_that_generation_config_ends_a_response_with_is_refused(tmp_path):
    message = file_refused(tmp_path, "generation_config.json", {"eos_token_id": [38, 39]})
    assert "ends a response" in message and "generation_config.json" in message
    with pytest.raises(DataError, match="ends a response"):
        make_config(LLADA, token_ids={"mask_id": 38, "pad_id": 1})


@pytest.mark.parametrize("key", ["mask", "bos"])
def test_an_override_repairs_an_id_that_is_none(key):
    assert getattr(make_config(LLADA | {f"{key}_token_id": "x"}, token_ids={f"{key}_id": 36}), f"{key}_id") == 36


@pytest.mark.parametrize("value", ["7", 7.0, True], ids=repr)
@pytest.mark.parametrize("key", ["mask_id", "eos_id", "bos_id"])
def test_an_override_that_is_no_token_id_is_refused(key, value):
    with pytest.raises(UsageError, match=f"{key} is no token id"):
        make_config(LLADA, token_ids={key: value})


def test_several_eos_ids_stay_allowed(tmp_path):
    assert make_config(LLADA | {"eos_token_id": [38, 36]}).stop_ids == (38, 36)
    (tmp_path / "config.json").write_text(json.dumps(LLADA))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [36, 37], "pad_token_id": 36}))
    config = read_config(tmp_path)
    assert (config.eos_id, config.stop_ids) == (38, (38, 36, 37))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architectures": 5, "model_type": None}, "architectures"),
        ({"architectures": "LLaDAModelLM"}, "architectures"),
        ({"architectures": [5]}, "architectures"),
        ({"model_type": ["llada"]}, "model_type"),
        ({"model_type": 5}, "model_type"),
    ],
)
def test_names_of_the_wrong_type_are_refused(change, words):
    assert f"no usable {words}" in refused(LLADA, change)
    assert make_config(LLADA | {"architectures": None}).family == "llada"
    assert make_config({key: value for key, value in LLADA.items() if key != "model_type"}).family == "llada"


def file_refused(folder, name, content, raw=LLADA):
    (folder / "config.json").write_text(json.dumps(raw))
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(DataError) as caught:
        read_config(folder)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("tokenizer.json", {"added_tokens": {"a": 1}}, "added_tokens = {'a': 1}"),
        ("tokenizer.json", {"added_tokens": [{"id": 1}]}, "added_tokens"),
        ("tokenizer.json", {"added_tokens": [{"id": "x", "content": "<m>"}]}, "added_tokens"),
        ("tokenizer.json", {"added_tokens": 5}, "added_tokens"),
        ("tokenizer_config.json", {"added_tokens_decoder": [1]}, "added_tokens_decoder = [1]"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": {"content": "<m>"}}}, "added_tokens_decoder"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"1": "<m>"}}, "added_tokens_decoder"),
        ("tokenizer_config.json", {"mask_token": 5}, "mask_token"),
        ("tokenizer_config.json", {"eos_token": {"content": ["<e>"]}}, "eos_token"),
        ("tokenizer_config.json", [], "no mapping"),
        ("generation_config.json", [], "no mapping"),
    ],
)
def test_a_tokenizer_file_of_another_shape_is_named(tmp_path, name, content, words):
    raw = {key: value for key, value in LLADA.items() if key != "mask_token_id"}
    message = file_refused(tmp_path, name, content, raw)
    assert name in message and words in message


def test_a_config_that_is_a_folder_is_named(tmp_path):
    (tmp_path / "config.json").mkdir()
    with pytest.raises(DataError, match=r"config\.json cannot be read"):
        read_config(tmp_path)


@pytest.mark.parametrize("value", [{"model_types": "other"}, {"architectures": ("A", 5)}, {"parse": {}}], ids=said)
def test_a_family_whose_names_would_match_by_accident_cannot_be_made(value):
    given = {"name": "other", "model_types": ("other",), "architectures": (), "parse": qwen_fields} | value
    with pytest.raises(UsageError, match=f"{next(iter(value))} of family 'other'"):
        Family(**given)
