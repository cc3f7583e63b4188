"""Logits of the reference models, every stored variant, within 5e-6 in float32."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from dare_eval.networks import load_network, make_config
from tests.golden.folders import golden_files, label

# The references ran the same CPU kernels; two float32 kernels differ by this much at logits of about 15.
TOLERANCE = 5e-6
FILES = golden_files("*_logits.safetensors")
SUFFIX = "_raw_unshifted"
VARIANTS = {
    "logits": "",
    "logits_with_additive_0_1_mask": "",
    "full_logits": "full_",
    "padded_logits": "padded_",
}
INPUTS = ("input_ids", "attention_mask", "position_ids", "block_causal_mask")


def read(path: Path) -> dict[str, torch.Tensor]:
    with safe_open(path, "pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def model_of(path: Path) -> Path:
    stem = path.stem.removesuffix("_logits")
    folders = [path.parent / name for name in (f"{stem}_tiny", stem)]
    found = [folder for folder in folders if (folder / "config.json").is_file()]
    assert found, f"{path} has no model beside it ({' or '.join(folder.name for folder in folders)})"
    return found[0]


def open_model(folder: Path, backend: str = "sdpa"):
    raw = json.loads((folder / "config.json").read_text())
    # Some published configs carry no mask id; logits do not depend on it.
    ids = {} if "mask_token_id" in raw else {"mask_id": raw["vocab_size"] - 2}
    return load_network(str(folder), attn_backend=backend, token_ids=ids)


def cases() -> list:
    found = []
    for path in FILES:
        for key in read(path):
            if "logits" in key:
                found.append(pytest.param(path, key, id=f"{label(path)}-{key}"))
    return found


@pytest.mark.parametrize("path", FILES, ids=label)
def test_every_tensor_of_the_file_is_understood(path):
    prefixes = {VARIANTS[key.removesuffix(SUFFIX)] for key in read(path) if key.removesuffix(SUFFIX) in VARIANTS}
    known = {prefix + name for prefix in prefixes for name in INPUTS}
    strange = [key for key in read(path) if key.removesuffix(SUFFIX) not in VARIANTS and key not in known]
    assert not strange, f"{path} holds tensors this test does not know: {strange}"
    assert prefixes, f"{path} holds no logits"


def attention(tensors: dict, key: str, prefix: str):
    """Return the mask in the shape the reference was given, which decides the CPU kernel."""
    block = tensors.get(prefix + "block_causal_mask")
    if block is not None:
        block = block[:, None] if block.ndim == 3 and block.shape[0] > 1 else block
        return block.float() if "additive" in key else block.bool()
    keep = tensors.get(prefix + "attention_mask")
    return None if keep is None else keep.bool()[:, None, None, :]


@pytest.mark.parametrize(("path", "key"), cases())
def test_logits_equal_the_reference(path, key):
    tensors = read(path)
    prefix = VARIANTS[key.removesuffix(SUFFIX)]
    network = open_model(model_of(path))
    with torch.no_grad():
        logits = network(
            tensors[prefix + "input_ids"],
            mask=attention(tensors, key, prefix),
            positions_BT=tensors.get(prefix + "position_ids"),
        )
    keep = tensors.get(prefix + "attention_mask", torch.ones_like(tensors[prefix + "input_ids"])).bool()
    assert logits.dtype == torch.float32
    assert (logits - tensors[key])[keep].abs().max() <= TOLERANCE


@pytest.mark.parametrize("path", FILES, ids=label)
def test_the_trained_attention_is_the_default(path):
    """Without a mask a network attends as it was trained; block families at the file's own block length."""
    tensors, folder = read(path), model_of(path)
    if "block_causal_mask" not in tensors:
        assert open_model(folder).config.block_length is None
        return
    block = int(tensors["block_causal_mask"].flatten(0, -2)[0].sum())
    raw = json.loads((folder / "config.json").read_text()) | {"block_size": block}
    network = open_model(folder)
    network.config = make_config(raw, token_ids={"mask_id": network.config.mask_id})
    with torch.no_grad():
        logits = network(tensors["input_ids"])
    # Another CPU kernel than the reference's (a four-dimensional mask), hence the wider bound.
    torch.testing.assert_close(logits, tensors["logits"], atol=2e-5, rtol=0)


@pytest.mark.parametrize("path", golden_files("*.safetensors"), ids=label)
def test_no_golden_tensor_file_is_ignored(path):
    belongs = path.name == "model.safetensors" and (path.parent / "config.json").is_file()
    assert belongs or path in FILES, f"{path} is of a kind no golden test knows"
