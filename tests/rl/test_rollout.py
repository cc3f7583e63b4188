"""Rollouts: own seeds, no copies, the evaluation's loop, trees, the protocol, and what the update is handed."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from dare_eval.decoding import RecordOptions, decode
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec
from dare_train.rl.backends import BackendFacts, InProcess, Request, Scripted
from dare_train.rl.config import RolloutSettings
from dare_train.rl.named import named_weights
from dare_train.rl.records import predictions, trajectory_of
from dare_train.rl.rewards import Outcome
from dare_train.rl.rollout import Sampler, completion_seed, rollout_spec
from dare_train.rl.trajectory import require
from dare_train.rl.trees import TreeShape, build_tree, cuts, sample_trees
from dare_train.rl.watch import Watcher, divided, left_to_right
from dare_train.scorer import Scorer

SPEC = {"gen_length": 5, "block_length": 5, "steps": 3, "temperature": 1.0}


def sampler_of(parts, spec=None, **changes):
    network, plan, _ = parts
    backend = InProcess(BackendFacts(network=network, folder="", attn_backend="auto"))
    spec = spec or DecodeSpec.build(network.config.family, **SPEC)
    return Sampler(**{"backend": backend, "tokenizer": plan.tokenizer, "spec": spec, "group_size": 4, **changes})


def test_completions_of_a_prompt_are_no_copies_and_do_not_depend_on_the_batch(tiny):
    """C169: at temperature 1 four completions of one prompt differ."""
    keyed = list(enumerate(tiny[2], start=100))
    rows = sampler_of(tiny).groups(keyed, states=False)
    groups = [rows[start : start + 4] for start in range(0, len(rows), 4)]
    assert sum(len({row.text for row in group}) >= 2 for group in groups) >= 10
    assert len({row.seed for row in rows}) == len(rows) == 48
    small = sampler_of(tiny, rows_per_batch=5).groups(keyed, states=False)
    assert [row.result.response for row in small] == [row.result.response for row in rows]
    alone = sampler_of(tiny).groups(keyed[7:8], states=False)
    assert [row.result.response for row in alone] == [row.result.response for row in groups[7]]


def test_rollout_is_the_evaluations_decoding(tiny):
    network, _, problems = tiny
    row = sampler_of(tiny).groups([(9, problems[0])], states=False)[2]
    spec = DecodeSpec.build("llada", **SPEC)
    [same] = decode(network, [list(problems[0].prompt)], spec, row_seeds=[completion_seed(0, 9, 2)])
    assert same.response == row.result.response and same.step_map == row.result.step_map


def test_equal_rows_of_a_request_are_refused(tiny):
    with pytest.raises(UsageError, match="copies"):
        Request(prompts=[[1], [1]], seeds=[4, 4], spec=DecodeSpec.build("llada", **SPEC))


@pytest.mark.parametrize("which", ["tiny", "tiny_blocks"])
def test_recorded_log_probabilities_are_the_updates_where_decoding_is_exact(request, which):
    parts = request.getfixturevalue(which)
    network, _, problems = parts
    blocks = network.config.block_length
    settings = SPEC if blocks is None else {"gen_length": 8, "block_length": 4, "steps": 6, "temperature": 1.0}
    cache = {} if blocks is None else {"cache": "block"}
    spec = DecodeSpec.build(network.config.family, **settings, **cache)
    rows = sampler_of(parts, spec).groups(list(enumerate(problems)), states=True)
    scorer = Scorer(block_length=blocks)
    ids = {"mask_id": network.config.mask_id, "pad_id": network.config.pad_id}
    watcher = Watcher(scorer=scorer, spec=spec, rows=48, seed=1, **ids)
    found = divided(watcher.sums(network, rows))
    assert found["rollout_gap"] < 1e-4 and abs(found["rollout_kl"]) < 1e-4
    assert 0.1 < found["entropy"] < 5
    trajectory = trajectory_of(rows[0], Outcome(reward=1.0), spec, states=True, step_rewards=[0.0] * rows[0].result.nfe)
    require([trajectory], "step_map")
    fixed = [logp for logp, step in zip(trajectory.rollout_logps, trajectory.step_map, strict=True) if step >= 0]
    assert all(logp < 0 for logp in fixed)


def test_dream_is_compared_at_the_temperature_it_ranks_by_and_its_entropy_is_the_plain_one(tiny):
    """Its sampler records p(token) after temperature; recipes roll out at 0.2, where plain values would be far off."""
    network, _, problems = tiny
    before, facts, found = network.config, dataclasses.replace(network.config, family="dream"), {}
    for temperature in (1.0, 0.5):
        spec = DecodeSpec.build("dream", **{**SPEC, "temperature": temperature})
        network.config = facts
        try:
            rows = sampler_of(tiny, spec).groups(list(enumerate(problems)), states=True)
            ids = {"mask_id": facts.mask_id, "pad_id": facts.pad_id}
            found[temperature] = divided(
                Watcher(scorer=Scorer(), spec=spec, rows=48, seed=1, **ids).sums(network, rows)
            )
        finally:
            network.config = before
    for figures in found.values():
        assert figures["rollout_gap"] < 1e-4 and abs(figures["rollout_kl"]) < 1e-4
    assert found[0.5]["entropy"] > 0.7 * found[1.0]["entropy"], "that of the network, not of the sharpened one"


def test_a_threshold_rollout_has_a_gap_and_says_so(tiny):
    network, _, problems = tiny
    spec = DecodeSpec.build("llada", gen_length=8, block_length=4, policy="threshold", threshold=0.3, cache="dual")
    spec = dataclasses.replace(spec, temperature=1.0)
    rows = sampler_of(tiny, spec).groups(list(enumerate(problems)), states=True)
    ids = {"mask_id": network.config.mask_id, "pad_id": network.config.pad_id}
    found = divided(Watcher(scorer=Scorer(), spec=spec, rows=48, seed=1, **ids).sums(network, rows))
    assert found["rollout_gap"] > 1e-3


def test_states_are_recorded_for_algorithms_that_reward_every_prediction(tiny):
    network, _, problems = tiny
    spec = DecodeSpec.build("llada", **SPEC)
    row = sampler_of(tiny, spec).groups([(0, problems[0])], states=True)[0]
    seen = predictions(row, network.config, spec)
    assert len(seen) == 3 and all(len(tokens) <= 5 for tokens in seen)
    assert seen[-1] == row.result.tokens
    trajectory = trajectory_of(row, Outcome(reward=0.0), spec, states=True, step_rewards=[0.0, 1.0, 0.0])
    require([trajectory], "states")
    assert trajectory.states_KR.shape == (3, 5) and (trajectory.states_KR[0] == network.config.mask_id).all()
    lost = trajectory_of(row, Outcome(reward=0.0), spec, states=True, step_rewards=[0.0, None, 0.0])
    assert lost.reward is None


@pytest.mark.parametrize("blocks", [False, True], ids=["by step", "by block"])
def test_tree(tiny, blocks):
    network, _, problems = tiny
    settings = SPEC if not blocks else {"gen_length": 8, "block_length": 2, "steps": 8, "temperature": 1.0}
    spec = DecodeSpec.build("llada", **settings)
    shape = TreeShape(samples=3, branches=2, levels=2)
    trees = sample_trees(sampler_of(tiny, spec), list(enumerate(problems[:4])), shape, mask_id=network.config.mask_id)
    assert [len(leaves) for leaves in trees] == [6] * 4
    mask_id = network.config.mask_id
    for leaves in trees:
        tree = build_tree(leaves, spec, shape, mask_id)
        assert tree.parent == (-1, 0, 0, 0, 1, 1, 2, 2, 3, 3)
        assert (tree.states_NR[0] == mask_id).all() and not (tree.states_NR[4:] == mask_id).any()
        for node in range(1, 10):
            parent = tree.states_NR[tree.parent[node]]
            stood = parent != mask_id
            assert torch.equal(tree.states_NR[node][stood], parent[stood]), "a child keeps what its parent has"
        inner = (tree.states_NR[1:4] != mask_id).sum(1).tolist()
        assert inner == ([4, 4, 4] if blocks else [2, 2, 2])
        for leaf in leaves:
            assert sorted(set(leaf.result.step_map)) == list(range(8 if blocks else 3))
    assert len({tuple(leaf.result.response) for leaves in trees for leaf in leaves}) > 8


def test_a_tree_needs_places_to_branch():
    spec = DecodeSpec.build("llada", gen_length=5, block_length=5, policy="threshold", threshold=0.9)
    with pytest.raises(UsageError, match="too few places"):
        cuts(spec, 2)


def test_decoding_goes_on_from_a_state(tiny):
    network, _, problems = tiny
    prompt, spec = list(problems[0].prompt), DecodeSpec.build("llada", **(SPEC | {"temperature": 0.0}))
    [whole] = decode(network, [prompt], spec, record=RecordOptions())
    state = whole.trace.state_SG[1].tolist()
    rest = dataclasses.replace(spec, steps=2)
    [again] = decode(network, [prompt], rest, committed=[state])
    assert again.response == whole.response and again.nfe == 2
    stood = [token != network.config.mask_id for token in state]
    assert [step for step, flag in zip(again.step_map, stood, strict=True) if flag] == [-1, -1]
    with pytest.raises(UsageError, match="do not fit"):
        decode(network, [prompt], rest, committed=[[3] * 9])


def test_defaults_follow_the_family(tiny, tiny_blocks):
    masked = rollout_spec(RolloutSettings(gen_length=8, block_length=4), tiny[0].config, {})
    assert (masked.policy, masked.cache, masked.threshold, masked.temperature) == ("threshold", "dual", 0.9, 1.0)
    block = rollout_spec(RolloutSettings(gen_length=8), tiny_blocks[0].config, {})
    assert (block.policy, block.cache, block.block_length) == ("dynamic", "block", 4)
    given = RolloutSettings(gen_length=4, block_length=4, steps=2, policy="quota", temperature=0.6, cache="none")
    forced = rollout_spec(given, tiny[0].config, {"block_length": 1, "temperature": 0.9})
    assert (forced.block_length, forced.steps, forced.temperature) == (1, 4, 0.6)
    assert rollout_spec(given, tiny[0].config, {"temperature": 0.0}).temperature == 0.0


def test_fake_backend_holds_callers_to_the_protocol(tiny):
    problems = tiny[2]
    backend = Scripted(lambda prompt, seed: [3 + seed % 2] * 5)
    sampler = sampler_of(tiny, backend=backend)
    with pytest.raises(UsageError, match="sleeps"):
        sampler.groups([(0, problems[0])], states=False)
    backend.wake()
    backend.sync(named_weights(tiny[0]), 7)
    rows = sampler.groups([(0, problems[0])], states=False)
    assert len(rows) == 4 and rows[0].result.step_map == [0, 1, 2, 3, 4]
    assert backend.calls[1].startswith("sync 7, ") and backend.version == 7
    backend.sleep()
    with pytest.raises(UsageError, match="sleeps"):
        sampler.groups([(0, problems[0])], states=False)


def test_named_weights_are_those_of_the_checkpoint_also_under_an_adapter(tiny):
    from dare_eval.networks import load_network
    from dare_train.adapters import add_lora, merge_adapters
    from dare_train.config import LoraSettings
    from dare_train.draws import seeded

    network = load_network("tiny-countdown")
    plain = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    assert dict(named_weights(network)).keys() == plain.keys()
    add_lora(network, LoraSettings(rank=2), seeded(0))
    for name, parameter in network.named_parameters():
        if ".lora_B." in name:
            torch.nn.init.constant_(parameter, 0.1)
    pushed = {name: tensor.clone() for name, tensor in named_weights(network)}
    merge_adapters(network)
    merged = network.state_dict()
    assert pushed.keys() == merged.keys() == plain.keys()
    assert all(torch.allclose(pushed[name], merged[name], atol=1e-6) for name in merged)
    assert any(not torch.equal(pushed[name], plain[name]) for name in plain)


@pytest.mark.parametrize(
    ("steps", "order"), [([0, 1, 2], 1.0), ([2, 1, 0], -1.0), ([0, 0, 0], None), ([-1, 0, 1], 1.0)]
)
def test_unmask_order(steps, order):
    assert left_to_right(steps) == (None if order is None else pytest.approx(order))


def test_only_watched_rows_keep_their_passes_and_nothing_else_changes(tiny):
    keyed = list(enumerate(tiny[2][:4]))
    every = sampler_of(tiny).groups(keyed, states=True)
    some = sampler_of(tiny, rows_per_batch=6).groups(keyed, states=False, watched=8)
    assert [row.result.trace is not None for row in some] == [True] * 8 + [False] * 8
    assert [row.result.response for row in some] == [row.result.response for row in every]
    for left, right in zip(some[:8], every[:8], strict=True):
        assert left.result.trace.steps == right.result.trace.steps
        assert torch.equal(left.result.trace.state_SG, right.result.trace.state_SG)
        assert torch.equal(left.result.trace.committed_SG, right.result.trace.committed_SG)
