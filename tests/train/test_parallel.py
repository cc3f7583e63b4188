"""Two processes: columns split between them change nothing, and sharded networks neither hang nor differ."""

from __future__ import annotations

import pytest
import torch

from dare_eval.decoding import decode
from dare_eval.errors import UsageError
from dare_eval.networks import build_network
from dare_eval.spec import DecodeSpec
from dare_train.draws import seeded
from dare_train.engine.sequence import check_split
from dare_train.engine.world import plan_world
from dare_train.scorer import Scorer
from tests.train.parallel_cases import CASES, DECODES, gradients, in_processes, problem, scored

pytestmark = pytest.mark.xdist_group("processes")


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    checks = ["split_scores", "split_tokens", "uneven_forwards", "uneven_chunks"]
    return in_processes(tmp_path_factory.mktemp("split"), {"checks": checks, "split": 2})


@pytest.mark.parametrize("name", CASES)
def test_split_columns_give_the_values_and_gradients_of_one_process(split, name):
    case = CASES[name]
    network = build_network(case.config, generator=seeded(0), dtype=torch.float64)
    values = scored(network, case)
    values.backward_sum(1)
    logp_X, slopes = split["split_scores"][name]
    torch.testing.assert_close(logp_X, values.logp_X.detach(), rtol=0, atol=1e-9)
    expected = gradients(network)
    assert slopes.keys() == expected.keys()
    for key, slope in expected.items():
        torch.testing.assert_close(slopes[key], slope, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("name", DECODES)
def test_split_columns_decode_the_same_tokens(split, name):
    config, prompts, settings = DECODES[name]
    network = build_network(config, generator=seeded(0), dtype=torch.float64).eval()
    expected = decode(network, prompts, DecodeSpec.build(network.config.family, **settings))
    assert split["split_tokens"][name] == [(result.tokens, result.nfe) for result in expected]


def test_gathered_weights_let_processes_run_different_numbers_of_forwards(split):
    difference, any_whole = split["uneven_forwards"]
    assert difference == 0 and not any_whole, "weights are shards again afterwards"


def test_processes_may_need_different_numbers_of_head_chunks(split):
    case = CASES["plain"]
    network = build_network(case.config, generator=seeded(0))
    ids_BT, noisy_BT, chosen_BT, valid_BT = problem(case)
    first_BT = chosen_BT & (chosen_BT.cumsum(1) <= 1)
    for keep_BT in (first_BT, chosen_BT):
        Scorer()(network, noisy_BT, ids_BT, keep_BT, valid_BT).sum().backward()
    count, found = split["uneven_chunks"]
    assert count == int(first_BT.sum()) < int(chosen_BT.sum())
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad / 2, rtol=1e-4, atol=1e-6)


def test_a_split_that_cannot_be_is_refused_with_one_that_can():
    with pytest.raises(UsageError, match="attention heads") as caught:
        check_split(4, 6)
    assert "1, 2, 3, 6" in str(caught.value) and "sequence_parallel = 2" in str(caught.value)
    with pytest.raises(UsageError, match="is not a multiple") as caught:
        plan_world(3, 2)
    assert "start 2 processes" in str(caught.value)
    with pytest.raises(UsageError, match="sequence_parallel") as caught:
        plan_world(1, 2)
    assert "--nproc 2" in str(caught.value)


def test_processes_that_share_rows_count_as_one():
    worlds = [plan_world(6, 2, process) for process in range(6)]
    assert [world.share(range(7)) for world in worlds[::2]] == [world.share(range(7)) for world in worlds[1::2]]
    assert sorted(row for world in worlds[::2] for row in world.share(range(7))) == list(range(7))
    assert [world.process for world in worlds] == list(range(6)) and [w.leads for w in worlds].count(True) == 1
