"""The index of a sharded checkpoint: what it names is read, what it cannot mean is refused."""

from __future__ import annotations

import json
import logging

import pytest
import torch
from safetensors.torch import load_file, save_file

from dare_eval.errors import DataError
from dare_eval.networks import load_network, save_network
from tests.networks.helpers import network_of
from tests.networks.shapes import LLADA

INDEX = "model.safetensors.index.json"


@pytest.fixture
def sharded(tmp_path):
    """Folder, weight_map and shard names of a checkpoint in several files."""
    save_network(network_of(LLADA), tmp_path, max_shard_gib=20_000 / 2**30)
    placed = json.loads((tmp_path / INDEX).read_text())["weight_map"]
    names = sorted(set(placed.values()))
    assert len(names) > 2
    return tmp_path, placed, names


def write_index(folder, placed):
    (folder / INDEX).write_text(json.dumps({"weight_map": placed}))


@pytest.mark.parametrize(
    "name", [3, None, True, ["a"], {"a": 1}, "", ".", "..", "a\0b", "../w.safetensors", "sub/w.safetensors", "\\w"]
)
def test_what_is_no_file_name_is_refused(sharded, name):
    folder, placed, _ = sharded
    key = sorted(placed)[0]
    write_index(folder, placed | {key: name})
    with pytest.raises(DataError) as caught:
        load_network(str(folder))
    assert INDEX in str(caught.value) and key in str(caught.value) and repr(name) in str(caught.value)


def test_an_absolute_path_is_refused_though_the_file_exists(sharded):
    folder, placed, _ = sharded
    key = sorted(placed)[0]
    write_index(folder, placed | {key: str(folder / placed[key])})
    with pytest.raises(DataError, match="no file for"):
        load_network(str(folder))


def test_a_folder_in_the_place_of_a_shard_is_named(sharded):
    folder, placed, _ = sharded
    (folder / "sub").mkdir()
    write_index(folder, placed | {sorted(placed)[0]: "sub"})
    with pytest.raises(DataError, match="sub cannot be read"):
        load_network(str(folder))


@pytest.mark.parametrize("place", [0, -1], ids=["earlier", "later"])
def test_a_stray_copy_is_left_alone_whichever_shard_it_lies_in(sharded, place, caplog):
    folder, placed, names = sharded
    expected = load_network(str(folder)).state_dict()
    key = next(key for key, name in placed.items() if name == names[1])
    stray = load_file(folder / names[place])
    save_file(stray | {key: load_file(folder / names[1])[key] + 1}, folder / names[place])
    with caplog.at_level(logging.WARNING):
        found = load_network(str(folder)).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in found.items())
    assert names[place] in caplog.text and key in caplog.text and "not read" in caplog.text


def test_a_tensor_that_only_another_shard_holds_is_refused_with_the_named_shard(sharded):
    folder, placed, names = sharded
    key = next(key for key, name in placed.items() if name == names[0])
    write_index(folder, placed | {key: names[1]})
    with pytest.raises(DataError) as caught:
        load_network(str(folder))
    assert f"{key} ({names[1]})" in str(caught.value)


def test_a_tensor_that_the_index_does_not_list_is_read_unless_two_shards_hold_it(sharded):
    folder, placed, names = sharded
    expected = load_network(str(folder)).state_dict()
    key = next(key for key, name in placed.items() if name == names[0])
    write_index(folder, {other: name for other, name in placed.items() if other != key})
    assert torch.equal(load_network(str(folder)).state_dict()[key], expected[key])
    save_file(load_file(folder / names[1]) | {key: expected[key] + 1}, folder / names[1])
    with pytest.raises(DataError) as caught:
        load_network(str(folder))
    for word in (key, names[0], names[1]):
        assert word in str(caught.value)
