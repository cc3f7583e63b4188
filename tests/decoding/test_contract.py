"""What a decoding rule of an outside package promises: rules that break it are named instead of hanging a run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dare_eval.decoding import Policy, decode
from dare_eval.decoding.step import best
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec
from tests.decoding.conftest import prompts, tiny

MASK = 126


class One(Policy):
    """Commits the best position; the base of the broken ones."""

    def select(self, step):
        return best(step, step.score_RM, [1] * len(step.masks))


def run(monkeypatch, rule, batch=None, family="llada", **settings):
    monkeypatch.setattr("dare_eval.decoding.loop.POLICIES", SimpleNamespace(get=lambda name: rule))
    given = DecodeSpec.build(family, **{"gen_length": 8, "policy": "factor", **settings})
    return decode(tiny(family), prompts((3, 5)) if batch is None else batch, given)


def assert_refused(monkeypatch, rule, words, **settings) -> None:
    with pytest.raises(UsageError, match=rf"policy 'factor'(.|\n)*{words}(.|\n)*extending"):
        run(monkeypatch, rule, **settings)


@pytest.mark.parametrize("cache", ["none", "dual"])
def test_a_rule_that_commits_nothing_is_named(monkeypatch, cache):
    class Nothing(Policy):
        def select(self, step):
            return torch.zeros_like(step.live_RM)

    assert_refused(monkeypatch, Nothing, r"commits nothing in pass 0(.|\n)*2 of 2 rows", cache=cache)


def test_a_rule_that_forgets_one_row_is_named(monkeypatch):
    class FirstRow(One):
        def select(self, step):
            chosen = super().select(step)
            chosen[1:] = False
            return chosen

    assert_refused(monkeypatch, FirstRow, "1 of 2 rows keep their 8 masks")


@pytest.mark.parametrize(
    ("made", "seen"),
    [
        (lambda step: None, "NoneType"),
        (lambda step: step.live_RM.float(), "float32"),
        (lambda step: step.live_RM[:1, :1], r"shape \(1, 1\)"),
        (lambda step: torch.zeros(2, 1, dtype=torch.long), "int64"),
        (lambda step: step.live_RM.tolist(), "list"),
    ],
)
def test_what_is_no_selection_is_named(monkeypatch, made, seen):
    rule = type("Rule", (Policy,), {"select": lambda self, step: made(step)})
    assert_refused(monkeypatch, rule, rf"select\(\)(.|\n)*{seen}(.|\n)*shape \(2, 8\)")


def test_committed_positions_outside_the_masks_are_dropped(monkeypatch):
    class Everything(One):
        """Leaves the rows with different numbers of masks, then marks dead entries too."""

        def select(self, step):
            chosen = torch.ones_like(step.live_RM)
            if step.index == 0:
                chosen[0, 1:] = chosen[1, 2:] = False
            return chosen

    together = run(monkeypatch, Everything)
    assert all(MASK not in r.response and r.step_map.count(0) == row + 1 for row, r in enumerate(together))

    class Dropped(Everything):
        def select(self, step):
            return super().select(step) & step.live_RM

    assert [r.response for r in run(monkeypatch, Dropped)] == [r.response for r in together]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (lambda step: step.masks, r"counts\(\)(.|\n)*7 masks left"),
        (lambda step: [0] * len(step.masks), r"counts\(\)(.|\n)*\[0, 0\](.|\n)*from 1"),
        (lambda step: [left + 1 for left in step.masks], r"counts\(\)(.|\n)*\[9, 9\]"),
        (lambda step: [1], r"counts\(\)(.|\n)*2 integers"),
        (lambda step: 1, r"counts\(\)(.|\n)*int 1"),
        (lambda step: [1.0, 1.0], r"counts\(\)(.|\n)*1\.0"),
    ],
)
def test_counts_that_are_not_those_of_the_selection_are_named(monkeypatch, told, words):
    rule = type("Rule", (One,), {"counts": lambda self, step: told(step)})
    assert_refused(monkeypatch, rule, words)


def test_counts_below_the_selection_are_named(monkeypatch):
    class All(Policy):
        def select(self, step):
            return step.live_RM.clone()

        def counts(self, step):
            return [1] * len(step.masks)

    assert_refused(monkeypatch, All, r"after forward 7 was full after forward 0")


@pytest.mark.parametrize("kind", [list, np.array])
def test_right_counts_pass(monkeypatch, kind):
    class Counted(One):
        def counts(self, step):
            return list(kind([1] * len(step.masks)))

    for cache in ("none", "prefix"):
        plain, counted = (run(monkeypatch, rule, block_length=4, cache=cache) for rule in (One, Counted))
        assert [(r.response, r.nfe) for r in plain] == [(r.response, r.nfe) for r in counted]


def seeing(columns):
    return type("Seeing", (One,), {"visible": lambda self, block, width: columns(block, width)})


@pytest.mark.parametrize("family", ["llada", "dream"])
def test_columns_with_gaps_predict_the_same_positions(monkeypatch, family):
    batch = prompts((6,))
    # Columns 1 and 2 hidden: what the whole network would see of a prompt without them, at the same positions.
    gaps = seeing(lambda block, width: [0, *range(3, width)])
    later = seeing(lambda block, width: range(2, width))
    for rule, hidden in ((gaps, [1, 2]), (later, [0, 1])):
        found = run(monkeypatch, rule, batch, family)[0].response
        given = DecodeSpec.build(family, gen_length=8, policy="factor")
        network = tiny(family)
        monkeypatch.setattr("dare_eval.decoding.loop.POLICIES", SimpleNamespace(get=lambda name: One))
        monkeypatch.setattr("dare_eval.decoding.denoiser.AttentionMask", without(hidden))
        assert decode(network, batch, given)[0].response == found
        monkeypatch.undo()


def without(hidden):
    """Return attention masks that hide the given columns of the canvas instead of leaving them out."""
    from dare_eval.networks.attention import AttentionMask

    class Hiding(AttentionMask):
        def __new__(cls, **given):
            keep = torch.ones(1, 14, dtype=torch.bool)
            keep[:, hidden] = False
            return AttentionMask(keep_BS=keep)

    return Hiding


@pytest.mark.parametrize(
    "columns",
    [
        lambda block, width: range(block.start + 1, width),
        lambda block, width: [*range(block.stop), block.stop - 1],
        lambda block, width: [*range(width), width],
        lambda block, width: [-1, *range(width)],
        lambda block, width: [],
        lambda block, width: 3,
        lambda block, width: ["a"],
    ],
)
def test_columns_that_cannot_be_used_are_named(monkeypatch, columns):
    assert_refused(monkeypatch, seeing(columns), r"visible\(\) returned unusable columns", block_length=4)


def test_a_shifted_network_needs_the_column_before_the_block(monkeypatch):
    rule = seeing(lambda block, width: range(block.start, width))
    assert run(monkeypatch, rule)[0].response.count(MASK) == 0
    assert_refused(monkeypatch, rule, r"visible\(\) returned unusable columns", family="dream")


@pytest.mark.parametrize(
    ("family", "settings"),
    [("llada", {"cache": "dual"}), ("llada", {"cache": "prefix"}), ("sdar", {}), ("sdar", {"cache": "block"})],
)
def test_columns_are_not_hidden_from_caches_and_block_causal_networks(monkeypatch, family, settings):
    rule = seeing(lambda block, width: list(range(block.stop)))
    assert_refused(monkeypatch, rule, r"visible\(\) hides columns", family=family, **settings)
