from __future__ import annotations

import inspect
import sys
import types

import pytest
import torch
import torch.nn.attention.varlen

from dare_eval.errors import SetupError, UsageError
from dare_eval.networks import AttentionMask
from dare_eval.networks.attention.plan import Call, choose_backend
from tests.networks.helpers import generator, ids_of, left_padded, network_of
from tests.networks.shapes import ALL, DREAM, LLADA, LLADA2, SDAR

LENGTH = 12
CLOSE = {"atol": 3e-5, "rtol": 1e-5}
KEEP = left_padded(3, LENGTH)
SEGMENTS = torch.tensor([[0] * 5 + [1] * 4 + [-1] * 3, [0] * 12, [2] * 3 + [3] * 9])
MASKS = {
    "own": lambda: None,
    "padding": lambda: AttentionMask.padding(KEEP),
    "key padding tensor": lambda: KEEP[:, None, None, :],
    "dense tensor": lambda: torch.ones(LENGTH, LENGTH).tril(2).bool()[None, None],
    "blocks": lambda: AttentionMask.block_causal(LENGTH, 3, keep_BS=KEEP, start_B=(~KEEP).sum(1)),
    "packed": lambda: AttentionMask.packed(SEGMENTS),
    "packed blocks": lambda: AttentionMask.packed(SEGMENTS, block_length=2),
    "training": lambda: AttentionMask.noisy_clean(torch.tensor([[0] * 4 + [-1] * 2, [0] * 6, [0] * 3 + [1] * 3]), 2),
}
BIDIRECTIONAL = {"padding", "key padding tensor", "packed"}
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def real(name: str) -> torch.Tensor:
    if name in ("padding", "key padding tensor", "blocks"):
        return KEEP
    mask = MASKS[name]()
    return torch.ones_like(KEEP) if mask is None or isinstance(mask, torch.Tensor) else mask.keep_BS.expand_as(KEEP)


@pytest.mark.parametrize("name", sorted(MASKS))
@pytest.mark.parametrize("family", ["llada", "dream", "sdar", "llada2"])
def test_flex_equals_sdpa(family, name):
    sdpa, flex = (network_of(ALL[family], attn_backend=backend) for backend in ("sdpa", "flex"))
    ids, mask, seen = ids_of(3, LENGTH), MASKS[name](), real(name)
    with torch.no_grad():
        torch.testing.assert_close(flex(ids, mask=mask)[seen], sdpa(ids, mask=mask)[seen], **CLOSE)


@pytest.mark.parametrize("name", sorted(set(MASKS) - {"dense tensor", "key padding tensor"}))
def test_flex_equals_sdpa_in_cached_passes(name):
    sdpa, flex = (network_of(SDAR, attn_backend=backend) for backend in ("sdpa", "flex"))
    ids, mask, seen, part = ids_of(3, LENGTH), MASKS[name](), real(name), slice(5, 9)
    with torch.no_grad():
        caches = [network.new_cache(3, LENGTH) for network in (sdpa, flex)]
        outputs = []
        for network, cache in zip((sdpa, flex), caches, strict=True):
            network(ids, mask=mask, cache=cache)
            outputs.append(network(ids[:, part], mask=mask, cache=cache, columns=part)[seen[:, part]])
    torch.testing.assert_close(outputs[0], outputs[1], **CLOSE)


@pytest.mark.parametrize("name", sorted(BIDIRECTIONAL))
@pytest.mark.parametrize("family", sorted(ALL))
def test_varlen_equals_sdpa_on_the_real_tokens(family, name):
    sdpa, varlen = (network_of(ALL[family], attn_backend=backend) for backend in ("sdpa", "varlen"))
    ids, mask, seen = ids_of(3, LENGTH), MASKS[name](), real(name)
    with torch.no_grad():
        torch.testing.assert_close(varlen(ids, mask=mask)[seen], sdpa(ids, mask=mask)[seen], **CLOSE)


@pytest.mark.parametrize("backend", ["sdpa", "varlen"])
@pytest.mark.parametrize("family", ["llada", "dream", "llada_moe"])
def test_a_packed_row_equals_its_sequences_on_their_own(family, backend):
    """Forward and gradient: what a packed batch trains on is what each sequence alone would."""
    network = network_of(ALL[family], attn_backend=backend).train()
    lengths = [5, 1, 6]
    parts = [ids_of(1, length, seed=length) for length in lengths]
    segment = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths))[None]
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    packed = network(torch.cat(parts, dim=1), mask=AttentionMask.packed(segment), positions_BT=positions)
    alone = torch.cat([network(part) for part in parts], dim=1)
    torch.testing.assert_close(packed, alone, **CLOSE)
    grads = [
        torch.autograd.grad(out.logsumexp(-1).sum(), network.layers[0].parameters(), allow_unused=True)
        for out in (packed, alone)
    ]
    for one, other in zip(*grads, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, atol=2e-4, rtol=1e-4)


def test_varlen_packs_segments_that_lie_apart():
    sdpa, varlen = (network_of(LLADA, attn_backend=backend) for backend in ("sdpa", "varlen"))
    mask = AttentionMask.packed(torch.tensor([[0, 1, 0, 1, 2, -1]]))
    with torch.no_grad():
        a, b = (network(ids_of(1, 6), mask=mask) for network in (sdpa, varlen))
    torch.testing.assert_close(a[:, :5], b[:, :5], **CLOSE)


def test_varlen_equals_sdpa_in_cached_passes():
    sdpa, varlen = (network_of(DREAM, attn_backend=backend) for backend in ("sdpa", "varlen"))
    ids, mask, part = ids_of(3, LENGTH), AttentionMask.padding(KEEP), slice(5, 9)
    outputs = []
    with torch.no_grad():
        for network in (sdpa, varlen):
            cache = network.new_cache(3, LENGTH)
            network(ids, mask=mask, cache=cache)
            outputs.append(network(ids[:, part], mask=mask, cache=cache, columns=part))
    torch.testing.assert_close(outputs[0], outputs[1], **CLOSE)


def test_a_kernel_refuses_the_masks_it_cannot_express():
    ids = ids_of(3, LENGTH)
    with pytest.raises(UsageError, match="no arbitrary masks"):
        network_of(SDAR, attn_backend="varlen")(ids)
    with pytest.raises(UsageError, match="no arbitrary masks"):
        network_of(LLADA, attn_backend="varlen")(ids, mask=MASKS["dense tensor"]())
    with pytest.raises(UsageError, match="additive"):
        network_of(LLADA, attn_backend="flex")(ids, mask=torch.zeros(1, 1, LENGTH, LENGTH))
    with pytest.raises(UsageError, match="no backward pass on the CPU"):
        network_of(LLADA, attn_backend="flex")(ids)
    network = network_of(LLADA, attn_backend="varlen")
    with pytest.raises(UsageError, match="one sequence per row"), torch.no_grad():
        network(ids, mask=AttentionMask.packed(SEGMENTS), cache=network.new_cache(3, LENGTH))


def test_an_additive_mask_is_added_to_the_scores():
    network, ids = network_of(LLADA2), ids_of(1, 8)
    blocks = AttentionMask.block_causal(8, 4).dense(torch.arange(8)[None], 8)
    with torch.no_grad():
        hidden = network(ids, mask=blocks)
        infinite = network(ids, mask=torch.zeros(blocks.shape).masked_fill(~blocks, float("-inf")))
        soft = network(ids, mask=blocks.float())
    torch.testing.assert_close(hidden, infinite, **CLOSE)
    assert not torch.allclose(hidden, soft, atol=1e-2)


class Flash(types.ModuleType):
    """Stands in for flash-attn: the two functions with the published signatures, computed by plain loops."""

    def __init__(self) -> None:
        super().__init__("flash_attn")
        self.calls: list[str] = []

    def flash_attn_varlen_func(
        self, q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None,
        causal=False,
    ):  # fmt: skip
        self.calls.append("varlen")
        assert cu_seqlens_q.dtype == cu_seqlens_k.dtype == torch.int32 and not causal
        assert max_seqlen_q == int(cu_seqlens_q.diff().max()) and max_seqlen_k == int(cu_seqlens_k.diff().max())
        out = []
        for i in range(len(cu_seqlens_q) - 1):
            (a, b), (c, d) = cu_seqlens_q[i : i + 2].tolist(), cu_seqlens_k[i : i + 2].tolist()
            out.append(attend(q[a:b], k[c:d], v[c:d]))
        return torch.cat(out)

    def flash_attn_with_kvcache(
        self, q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
        cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None, causal=False,
    ):  # fmt: skip
        self.calls.append("kvcache")
        assert k is None and v is None and not causal
        assert cache_seqlens.dtype == cache_leftpad.dtype == torch.int32
        spans = zip(cache_leftpad.tolist(), cache_seqlens.tolist(), strict=True)
        return torch.stack([attend(q[i], k_cache[i, a:b], v_cache[i, a:b]) for i, (a, b) in enumerate(spans)])


def attend(query, key, value):
    group = query.shape[1] // key.shape[1]
    key, value = (part.repeat_interleave(group, dim=1) for part in (key, value))
    scores = torch.einsum("qhd,khd->hqk", query, key) / query.shape[-1] ** 0.5
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), value)


@pytest.fixture
def flash(monkeypatch):
    module = Flash()
    monkeypatch.setitem(sys.modules, "flash_attn", module)
    return module


@pytest.mark.parametrize("name", sorted(BIDIRECTIONAL))
@pytest.mark.parametrize("family", ["llada", "dream"])
def test_flash_attention_gets_packed_sequences(flash, family, name):
    sdpa, fast = (network_of(ALL[family], attn_backend=backend) for backend in ("sdpa", "flash_attention_2"))
    ids, mask, seen = ids_of(3, LENGTH), MASKS[name](), real(name)
    with torch.no_grad():
        torch.testing.assert_close(fast(ids, mask=mask)[seen], sdpa(ids, mask=mask)[seen], **CLOSE)
    assert set(flash.calls) == {"varlen"}


@pytest.mark.parametrize("side", ["left", "right", "holes"])
def test_flash_attention_reads_the_cache_in_place(flash, side):
    keep = {"left": KEEP, "right": KEEP.flip(1), "holes": KEEP & (torch.arange(LENGTH) != 6)}[side]
    sdpa, fast = (network_of(DREAM, attn_backend=backend) for backend in ("sdpa", "flash_attention_2"))
    ids, mask, part, outputs = ids_of(3, LENGTH), AttentionMask.padding(keep), slice(4, 9), []
    with torch.no_grad():
        for network in (sdpa, fast):
            cache = network.new_cache(3, LENGTH)
            network(ids, mask=mask, cache=cache)
            outputs.append(network(ids[:, part], mask=mask, cache=cache, columns=part)[keep[:, part]])
    torch.testing.assert_close(outputs[0], outputs[1], **CLOSE)
    assert set(flash.calls) == ({"varlen"} if side == "holes" else {"kvcache"})


def test_flash_attention_refuses_block_causal_masks(flash):
    with pytest.raises(UsageError, match="'flex' or 'sdpa'"):
        network_of(SDAR, attn_backend="flash_attention_2")(ids_of(1, 8))


def test_flash_attention_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "flash_attn", None)
    with pytest.raises(SetupError, match=r"dare\[flash\]"):
        network_of(LLADA, attn_backend="flash_attention_2")(ids_of(1, 4))


def call(mask, device="cpu", dtype=torch.bfloat16, cached=False, length=LENGTH) -> Call:
    columns = types.SimpleNamespace(device=torch.device(device), shape=(1, length))
    return Call(mask=mask, column_BT=columns, rows=3, length=length, dtype=dtype, cached=cached)  # type: ignore[arg-type]


def test_auto_names_the_kernel_of_each_device_and_mask():
    assert choose_backend(call(MASKS["blocks"]())) == "sdpa"
    assert choose_backend(call(MASKS["packed"](), "cuda")) == "varlen"
    assert choose_backend(call(MASKS["packed"](), "cuda", torch.float32)) == "sdpa"
    assert choose_backend(call(MASKS["key padding tensor"](), "cuda", cached=True)) == "varlen"
    assert choose_backend(call(MASKS["blocks"](), "cuda")) == "sdpa"
    assert choose_backend(call(MASKS["blocks"](), "cuda", length=2048)) == "flex"
    assert choose_backend(call(MASKS["blocks"](), "cuda", length=2048, cached=True)) == "sdpa"
    assert choose_backend(call(MASKS["dense tensor"](), "cuda")) == "sdpa"
    assert choose_backend(call(None, "cuda")) == "sdpa"


def test_the_packed_kernel_of_torch_gets_what_it_takes(monkeypatch):
    """It needs CUDA to run; a stand-in with its signature shows that the arguments are the right ones."""
    from dare_eval.networks.attention import varlen

    published = inspect.signature(torch.nn.attention.varlen.varlen_attn)

    def stand_in(*args, **named):
        given = published.bind(*args, **named).arguments
        assert given.pop("enable_gqa")
        return Flash().flash_attn_varlen_func(*given.values())

    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", stand_in)
    source = generator(0)
    query, key, value = (torch.randn(36, heads, 8, generator=source) for heads in (4, 2, 2))
    mask = AttentionMask.packed(SEGMENTS)
    plan = Call(mask=mask, column_BT=torch.arange(LENGTH)[None], rows=3, length=LENGTH, dtype=query.dtype, cached=False)
    packing = varlen.pack(plan, mask)
    packed = [part[packing.query_N] for part in (query, key, value)]
    torch.testing.assert_close(varlen._kernel(*packed, packing), varlen._each(*packed, packing), **CLOSE)
