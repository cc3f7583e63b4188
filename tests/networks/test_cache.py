from __future__ import annotations

import pytest
import torch

from dare_eval.errors import UsageError
from dare_eval.networks import AttentionMask, KVCache
from tests.networks.helpers import ids_of, left_padded, network_of
from tests.networks.shapes import ALL, SDAR

FAMILIES = sorted(ALL)
CLOSE = {"atol": 2e-5, "rtol": 1e-5}
LENGTH = 12


def full_pass(family):
    network, ids = network_of(ALL[family]), ids_of(3, LENGTH)
    cache = network.new_cache(3, LENGTH)
    with torch.no_grad():
        return network, ids, cache, network(ids, cache=cache)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_full_pass_with_a_cache_is_a_full_pass(family):
    network, ids, _, logits = full_pass(family)
    with torch.no_grad():
        torch.testing.assert_close(logits, network(ids), **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("window", [slice(4, 12), slice(4, 8), slice(8, 9)], ids=["suffix", "block", "one"])
def test_refreshing_unchanged_columns_changes_nothing(family, window):
    """Prefix and dual caches: the pass over [a, T) or [a, e) right after a full one gives the same logits."""
    network, ids, cache, logits = full_pass(family)
    with torch.no_grad():
        again = network(ids[:, window], cache=cache, columns=window)
    torch.testing.assert_close(again, logits[:, window], **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
def test_overwritten_columns_are_seen_by_the_others(family):
    network, ids, cache, _ = full_pass(family)
    changed = ids.clone()
    changed[:, :4] = (changed[:, :4] + 3) % 38
    with torch.no_grad():
        network(changed, cache=cache)
        expected = network(changed)
        again = network(changed[:, 4:8], cache=cache, columns=slice(4, 8))
    torch.testing.assert_close(again, expected[:, 4:8], **CLOSE)


@pytest.mark.parametrize("family", ["sdar", "sdar_moe", "llada2"])
def test_committing_block_after_block_equals_no_cache(family):
    network, ids = network_of(ALL[family]), ids_of(3, LENGTH)
    block = network.config.block_length
    cache = network.new_cache(3, LENGTH)
    parts = []
    with torch.no_grad():
        for start in range(0, LENGTH, block):
            columns = slice(start, start + block)
            parts.append(network(ids[:, columns], cache=cache, columns=columns))
        torch.testing.assert_close(torch.cat(parts, dim=1), network(ids), **CLOSE)


def test_a_cache_of_the_first_columns_writes_through():
    network, ids = network_of(SDAR), ids_of(2, LENGTH)
    cache = network.new_cache(2, LENGTH)
    with torch.no_grad():
        head = network(ids[:, :8], cache=cache.first(8), columns=slice(0, 8))
        tail = network(ids[:, 8:], cache=cache, columns=slice(8, 12))
        torch.testing.assert_close(torch.cat((head, tail), dim=1), network(ids), **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_row_may_refresh_columns_of_its_own(family):
    network, ids, cache, logits = full_pass(family)
    columns = torch.tensor([[0, 1, 2], [5, 6, 7], [9, 4, 11]])
    with torch.no_grad():
        again = network(ids.gather(1, columns), cache=cache, columns=columns)
    expected = logits.gather(1, columns[..., None].expand(-1, -1, logits.shape[-1]))
    torch.testing.assert_close(again, expected, **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_leave_do_not_change_those_that_stay(family):
    network, ids, cache, logits = full_pass(family)
    for rows in (torch.tensor([2, 0]), torch.tensor([True, False, True])):
        kept = cache.select(rows)
        assert (kept.rows, kept.length) == (2, LENGTH)
        with torch.no_grad():
            again = network(ids[rows][:, 4:8], cache=kept, columns=slice(4, 8))
        torch.testing.assert_close(again, logits[rows][:, 4:8], **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_stays_out_of_cached_passes(family):
    network, ids, keep = network_of(ALL[family]), ids_of(3, LENGTH), left_padded(3, LENGTH)
    mask, cache = AttentionMask.padding(keep), network.new_cache(3, LENGTH)
    with torch.no_grad():
        logits = network(ids, mask=mask, cache=cache)
        for form in (mask, keep[:, None, None, :]):
            again = network(ids[:, 6:10], mask=form, cache=cache, columns=slice(6, 10))
            torch.testing.assert_close(again, logits[:, 6:10], **CLOSE)
        row = network(
            ids[2:, 6:10],
            mask=mask.select(torch.tensor([2])),
            cache=cache.select(torch.tensor([2])),
            columns=slice(6, 10),
        )
    torch.testing.assert_close(row, logits[2:, 6:10], **CLOSE)


def test_columns_that_do_not_match_the_tokens_are_refused():
    network = network_of(SDAR)
    cache = network.new_cache(2, LENGTH)
    for columns in (slice(0, 3), slice(10, 14), torch.zeros(3, 4, dtype=torch.long)):
        with pytest.raises(UsageError, match="columns"), torch.no_grad():
            network(ids_of(2, 4), cache=cache, columns=columns)


def test_an_empty_cache_has_the_networks_shape_and_type():
    network = network_of(SDAR, dtype=torch.bfloat16)
    cache = network.new_cache(2, 7)
    assert len(cache.keys) == network.config.layers
    assert cache.keys[0].shape == (2, 7, 2, 12) and cache.values[0].dtype == torch.bfloat16
    assert KVCache.empty(network.config, 2, 7).keys[0].dtype == torch.float32


def test_chosen_rows_and_first_columns_hold_what_was_written():
    network = network_of(SDAR)
    cache = network.new_cache(3, 5)
    heads, size = network.config.kv_heads, network.config.head_dim
    key_BTKVd, value_BTKVd = torch.randn(2, 3, 2, heads, size, generator=torch.Generator().manual_seed(0)).unbind()
    cache.write(1, key_BTKVd, value_BTKVd, slice(2, 4))
    for rows in (torch.tensor([2, 0]), torch.tensor([False, True, True])):
        part = cache.select(rows).first(4)
        assert torch.equal(part.keys[1][:, 2:], key_BTKVd[rows])
        assert torch.equal(part.values[1][:, 2:], value_BTKVd[rows])
        assert not bool(part.keys[1][:, :2].any()) and not bool(part.keys[0].any())
        # Attention on the CPU reads a head's columns as one run.
        for each in (part, cache):
            assert each.keys[1].transpose(1, 2)[0].stride() == (5 * size, size, 1)


def test_a_cache_lies_where_it_is_asked_to():
    config = network_of(SDAR).config
    with torch.device("meta"):
        assert KVCache.empty(config, 1, 2, devices="cpu").keys[0].device == torch.device("cpu")
    assert KVCache.empty(config, 1, 2, devices="meta").keys[0].device == torch.device("meta")
