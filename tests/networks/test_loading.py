from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dare_eval.errors import DataError, UsageError
from dare_eval.networks import load_network, save_network
from tests.networks.helpers import ids_of, network_of
from tests.networks.shapes import ALL, DREAM, LLADA, LLADA2

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "sampling"
WEIGHTS = "model.safetensors"


@pytest.fixture
def saved(tmp_path):
    save_network(network_of(LLADA), tmp_path)
    return tmp_path


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("*_tiny")), ids=lambda path: path.name)
def test_open_and_save_gives_the_same_file(folder, tmp_path):
    """Fused q/k/v, routing biases and experts included: same keys, same bits, same bytes."""
    save_network(load_network(str(folder), token_ids={"mask_id": 126}), tmp_path)
    assert (tmp_path / WEIGHTS).read_bytes() == (folder / WEIGHTS).read_bytes()
    before, after = (json.loads((place / "config.json").read_text()) for place in (folder, tmp_path))
    assert before == {key: value for key, value in after.items() if key in before}


@pytest.mark.parametrize("family", sorted(ALL))
def test_round_trip_keeps_every_bit_in_every_stored_type(family, tmp_path):
    for dtype in ("bfloat16", "float16", "float64"):
        network = network_of(ALL[family], dtype=getattr(torch, dtype))
        save_network(network, tmp_path / dtype)
        again = load_network(str(tmp_path / dtype), dtype="auto")
        assert again.dtype == getattr(torch, dtype)
        for key, value in network.state_dict().items():
            assert torch.equal(value, again.state_dict()[key]), key
        assert again.config == network.config


def test_shards_are_written_and_read_through_their_index(tmp_path):
    network = network_of(LLADA2)
    save_network(network, tmp_path, max_shard_gib=20_000 / 2**30)
    shards = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(shards) > 2 and WEIGHTS not in shards
    ids = ids_of(1, 6)
    with torch.no_grad():
        assert torch.equal(load_network(str(tmp_path))(ids), network(ids))
    save_network(network, tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.safetensors*")) == [WEIGHTS]


def test_saving_over_the_folder_it_was_opened_from_is_safe(saved):
    network = load_network(str(saved))
    expected = {key: value.clone() for key, value in network.state_dict().items()}
    save_network(network, saved)
    assert all(torch.equal(value, expected[key]) for key, value in network.state_dict().items())
    assert all(torch.equal(value, expected[key]) for key, value in load_file(saved / WEIGHTS).items())
    assert not list(saved.glob("*.partial"))


def test_companions_travel_with_the_weights(saved, tmp_path):
    (saved / "tokenizer.json").write_text("{}")
    (saved / "chat_template.jinja").write_text("x")
    out = save_network(load_network(str(saved)), tmp_path / "out", companions_from=saved)
    assert {path.name for path in out.iterdir()} == {"config.json", WEIGHTS, "tokenizer.json", "chat_template.jinja"}


def test_a_tied_head_has_no_key_and_no_weight_of_its_own(tmp_path):
    network = network_of(DREAM | {"tie_word_embeddings": True})
    assert "lm_head.weight" not in network.state_dict()
    save_network(network, tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    save_file(tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"].clone()}, tmp_path / WEIGHTS)
    ids = ids_of(1, 5)
    with torch.no_grad():
        assert torch.equal(load_network(str(tmp_path))(ids), network(ids))


def test_a_head_that_differs_from_the_embedding_it_should_be_tied_to_is_refused(tmp_path):
    save_network(network_of(DREAM | {"tie_word_embeddings": True}), tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    save_file(tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"] + 1}, tmp_path / WEIGHTS)
    with pytest.raises(DataError, match="lm_head"):
        load_network(str(tmp_path))


def test_stored_rotary_tables_are_not_trusted(saved):
    tensors = load_file(saved / WEIGHTS)
    expected = load_network(str(saved))
    key = "model.transformer.blocks.0.rotary_emb.inv_freq"
    save_file(tensors | {key: torch.full((4,), float("nan"))}, saved / WEIGHTS)
    ids = ids_of(1, 5)
    with torch.no_grad():
        assert torch.equal(load_network(str(saved))(ids), expected(ids))


def damage(folder: Path, kind: str) -> None:
    weights = folder / WEIGHTS
    content = weights.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if kind == "truncated":
        weights.write_bytes(content[:-100])
    elif kind == "cut in the header":
        weights.write_bytes(content[: 8 + length // 2])
    elif kind == "empty":
        weights.write_bytes(b"")
    elif kind == "trailing bytes":
        weights.write_bytes(content + b"\0" * 8)
    elif kind == "no json":
        weights.write_bytes(content[:8] + b"x" * length + content[8 + length :])
    elif kind == "json but no mapping":
        weights.write_bytes(content[:8] + b"[]".ljust(length) + content[8 + length :])
    elif kind == "huge header length":
        weights.write_bytes((2**62).to_bytes(8, "little") + content[8:])
    elif kind == "unknown type":
        key = next(key for key in header if key != "__metadata__")
        header[key]["dtype"] = "F31"
        write_header(weights, header, content[8 + length :])
    elif kind == "wrong offsets":
        key = next(key for key in header if key != "__metadata__")
        header[key]["shape"] = [1]
        write_header(weights, header, content[8 + length :])
    elif kind == "overlap":
        keys = [key for key in header if key != "__metadata__"]
        same = [key for key in keys if header[key]["shape"] == header[keys[0]]["shape"]]
        header[same[1]]["data_offsets"] = header[same[0]]["data_offsets"]
        write_header(weights, header, content[8 + length :])
    else:
        weights.unlink()


def write_header(weights: Path, header: dict, body: bytes) -> None:
    text = json.dumps(header).encode()
    weights.write_bytes(len(text).to_bytes(8, "little") + text + body)


@pytest.mark.parametrize(
    "kind",
    [
        "truncated",
        "cut in the header",
        "empty",
        "trailing bytes",
        "no json",
        "json but no mapping",
        "huge header length",
        "unknown type",
        "wrong offsets",
        "overlap",
        "missing",
    ],
)
def test_damaged_files_are_refused_by_name(saved, kind):
    damage(saved, kind)
    with pytest.raises(DataError) as caught:
        load_network(str(saved))
    assert WEIGHTS in str(caught.value)


@pytest.mark.parametrize("place", ["missing", "unexpected", "shape"])
def test_keys_that_do_not_fit_the_config_are_named(saved, place):
    tensors = load_file(saved / WEIGHTS)
    key = "model.transformer.blocks.1.up_proj.weight"
    if place == "missing":
        del tensors[key]
    elif place == "unexpected":
        key = "model.transformer.blocks.7.up_proj.weight"
        tensors[key] = torch.zeros(2)
    else:
        tensors[key] = tensors[key][:-1].contiguous()
    save_file(tensors, saved / WEIGHTS)
    with pytest.raises(DataError) as caught:
        load_network(str(saved))
    assert key in str(caught.value) and WEIGHTS in str(caught.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "auto"])
def test_weights_that_are_not_finite_are_named(saved, number, dtype):
    tensors = load_file(saved / WEIGHTS)
    key = "model.transformer.blocks.1.up_proj.weight"
    tensors[key][-1, -1] = number
    save_file(tensors, saved / WEIGHTS)
    with pytest.raises(DataError) as caught:
        load_network(str(saved), dtype=dtype)
    assert key in str(caught.value) and f"1 of {tensors[key].numel()} numbers" in str(caught.value)


def test_weights_beyond_the_range_of_the_chosen_type_are_named_with_the_type_that_holds_them(saved):
    tensors = load_file(saved / WEIGHTS)
    key = "model.transformer.ln_f.weight"
    tensors[key][0] = 1e5
    save_file(tensors, saved / WEIGHTS)
    load_network(str(saved))
    with pytest.raises(DataError, match=r"ln_f\.weight(.|\n)*infinite as float16(.|\n)*dtype = float32"):
        load_network(str(saved), dtype="float16")


def test_an_index_that_disagrees_with_its_shards_is_refused(tmp_path):
    save_network(network_of(LLADA), tmp_path, max_shard_gib=20_000 / 2**30)
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    names = sorted(set(content["weight_map"].values()))
    key = next(key for key, name in content["weight_map"].items() if name == names[0])
    content["weight_map"][key] = names[1]
    index.write_text(json.dumps(content))
    with pytest.raises(DataError, match=key.replace(".", r"\.")):
        load_network(str(tmp_path))
    (tmp_path / names[1]).unlink()
    with pytest.raises(DataError, match=names[1]):
        load_network(str(tmp_path))


def test_settings_are_checked_before_weights_are_read(saved):
    (saved / WEIGHTS).unlink()
    with pytest.raises(UsageError, match="did you mean 'bfloat16'"):
        load_network(str(saved), dtype="bfloat")
    with pytest.raises(UsageError, match="did you mean 'sdpa'"):
        load_network(str(saved), attn_backend="spda")
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | {"pad_token_id": 39}))
    with pytest.raises(UsageError, match="pad_token_id"):
        load_network(str(saved))


def test_an_unmerged_adapter_is_not_saved_as_a_checkpoint(tmp_path):
    from peft import LoraConfig, get_peft_model

    network = network_of(LLADA)
    adapted = get_peft_model(network, LoraConfig(target_modules=["q_proj"], r=2))
    with pytest.raises(DataError, match="merge"):
        save_network(network, tmp_path)
    merged = adapted.merge_and_unload()
    save_network(merged, tmp_path)
    assert load_network(str(tmp_path)).config == network.config


MEASURE = """
import sys
from dare_eval.networks import load_network
from dare_eval.networks.loading import build_network
def peak():
    with open('/proc/self/status') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmHWM')) * 1024
load_network(sys.argv[3], dtype=sys.argv[2])  # what opening anything costs once
before = peak()
network = load_network(sys.argv[1], dtype=sys.argv[2])
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_opening_a_checkpoint_holds_the_weights_once(tmp_path_factory):
    """A random checkpoint of 400 MB: the peak rises by one copy, and by one buffer where the type changes."""
    folder = tmp_path_factory.mktemp("big")
    raw = LLADA | {"d_model": 512, "n_heads": 8, "n_kv_heads": 8, "mlp_hidden_size": 2048, "n_layers": 19}
    raw |= {"vocab_size": 20000, "embedding_size": 20000}
    try:
        save_network(network_of(raw), folder)
        small = save_network(network_of(LLADA), folder / "small")
        stored = (folder / WEIGHTS).stat().st_size
        assert stored > 400e6
        for opened, weights, staging in (("float32", stored, 0), ("bfloat16", stored // 2, 20000 * 512 * 4)):
            command = [sys.executable, "-c", MEASURE, str(folder), opened, str(small)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            used = int(done.stdout)
            assert used < weights + staging + 16e6, f"{used / 1e6:.0f} MB for {weights / 1e6:.0f} MB of weights"
    finally:
        shutil.rmtree(folder)
