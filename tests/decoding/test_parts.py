"""Value sampler, schedules, canvas, stopping and recorder, each on its own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from dare_eval.decoding import RecordOptions, decode
from dare_eval.decoding.canvas import lay_out
from dare_eval.decoding.denoiser import Denoiser
from dare_eval.decoding.results import trim
from dare_eval.decoding.rows import Noise, Rows, row_seed
from dare_eval.decoding.sampler import ValueSampler, draw, keep_top_k, keep_top_p
from dare_eval.decoding.schedule import Budget, plan_blocks, share
from dare_eval.errors import UsageError
from dare_eval.networks import AttentionMask
from dare_eval.spec import DecodeSpec
from tests.decoding.conftest import prompts, tiny
from tests.decoding.toy import ToyNetwork, constant, uniform

LLADA = {"gen_length": 4, "block_length": 4}


def sampler(
    logits, score="confidence", *, family="llada", uniform=None, **settings
) -> tuple[torch.Tensor, torch.Tensor]:
    """Propose for one row of logits per position, values 0 .. V-1 with the mask last."""
    spec = DecodeSpec.build(family, **{**LLADA, **settings})
    table = torch.tensor(logits)
    network = ToyNetwork(constant({}, table.shape[1]), table.shape[1], table.shape[1] - 1, eos_id=1, eot_id=2)
    denoiser = SimpleNamespace(spec=spec, network=network, logits=lambda hidden, free: network.head(hidden))
    return ValueSampler(denoiser, score).propose(table, None, uniform)


def shaped(row, family: str, **settings) -> torch.Tensor:
    """Return the logits that one row of logits is drawn from."""
    spec = DecodeSpec.build(family, **{**LLADA, **settings})
    network = ToyNetwork(constant({}, len(row)), len(row), len(row) - 1)
    return ValueSampler(SimpleNamespace(spec=spec, network=network), "confidence")._shape(torch.tensor([row]))


def test_the_mask_is_never_proposed_but_keeps_its_probability():
    tokens, scores = sampler([[1.0, 0.0, 0.0, 9.0]])
    assert tokens.tolist() == [0]
    assert scores[0] == pytest.approx(float(torch.tensor([1.0, 0.0, 0.0, 9.0]).softmax(0)[0]))


def test_equal_logits_propose_the_lowest_id():
    assert sampler([[0.0, 2.0, 2.0, 0.0]])[0].tolist() == [1]


def test_scores():
    row = [2.0, 1.0, 0.0, -1.0, -9.0]
    probs = torch.tensor(row).softmax(0)
    assert sampler([row])[1][0] == pytest.approx(float(probs[0]))
    assert sampler([row], "margin")[1][0] == pytest.approx(float(probs[0] - probs[1]))
    assert sampler([row], "entropy")[1][0] == pytest.approx(float((probs * probs.log()).sum()), abs=1e-5)


def test_confidence_rule_gives_eos_zero_and_renormalises_the_others():
    tokens, scores = sampler(
        [[0.0, 5.0, 0.0, 1.0, -9.0], [2.0, 1.0, 1.0, 0.0, -torch.inf]], eos_rule="confidence_eos_eot_inf"
    )
    assert tokens.tolist() == [1, 0]
    assert scores[0] == 0
    assert scores[1] == pytest.approx(float(torch.tensor([2.0, 0.0]).softmax(0)[0]))


def test_parity_spares_eos_when_sampling():
    spec = {"eos_rule": "confidence_eos_eot_inf", "temperature": 1.0}
    row, draws = [[0.0, 9.0, 0.0, 1.0, -9.0]], torch.tensor([0.5], dtype=torch.float64)
    repaired = sampler(row, uniform=draws, **spec)
    published = sampler(row, uniform=draws, parity=["eos_kept_when_sampling"], **spec)
    assert repaired[0].tolist() == published[0].tolist() == [1]
    assert repaired[1][0] == 0 and published[1][0] > 0.9


def test_logit_rule_never_proposes_eos():
    assert sampler([[0.0, 5.0, 0.0, 1.0, -9.0]], eos_rule="logits_eos_inf")[0].tolist() == [3]


def test_dream_ranks_after_its_filters_and_others_before():
    row = [3.0, 2.0, 1.0, 0.0, -9.0]
    assert sampler([row], family="dream", top_k=1)[1][0] == 1.0
    assert sampler([row], family="llada", top_k=1, temperature=0.5)[1][0] == pytest.approx(
        float(torch.tensor(row).softmax(0)[0])
    )


def test_filters_are_applied_in_the_familys_order():
    row = [*torch.tensor([0.4, 0.3, 0.2, 0.1]).log().tolist(), -9.0]
    settings = {"top_k": 2, "top_p": 0.5, "temperature": 1.0}
    # Top-k first leaves 4/7 and 3/7, so 0.5 cuts after the first; top-p first keeps two, and so does top-k.
    kept = [int(shaped(row, family, **settings).isfinite().sum()) for family in ("sdar", "dream")]
    assert kept == [1, 2]


def test_filters_keep_the_head_of_the_distribution():
    logits = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log()
    assert keep_top_k(logits, 2).isfinite().tolist() == [[True, True, False, False]]
    assert keep_top_p(logits, 0.6).isfinite().tolist() == [[True, True, False, False]]
    assert keep_top_p(logits, 0.01).isfinite().tolist() == [[True, False, False, False]]
    assert keep_top_p(logits, 1.0).isfinite().all()


def test_draw_inverts_the_distribution_function():
    logits = torch.tensor([0.5, 0.0, 0.3, 0.2]).log().expand(6, -1)
    points = torch.tensor([0.0, 0.49, 0.51, 0.79, 0.81, 1.0 - 1e-12], dtype=torch.float64)
    assert draw(logits, points).tolist() == [0, 0, 2, 2, 3, 3]


def test_chunks_do_not_change_proposals(monkeypatch):
    given = DecodeSpec.build("llada", gen_length=16, block_length=16, steps=4)
    whole = decode(tiny("llada"), prompts(), given)
    monkeypatch.setattr("dare_eval.decoding.sampler.CHUNK_ELEMENTS", 128 * 3)
    assert [r.response for r in decode(tiny("llada"), prompts(), given)] == [r.response for r in whole]


def test_sharing_puts_the_remainder_first():
    assert [[share(count, 4, index) for index in range(4)] for count in (10, 7)] == [[3, 3, 2, 2], [2, 2, 2, 1]]


def budget(**settings):
    family = settings.pop("family", "llada")
    spec = DecodeSpec.build(family, **settings)
    canvas = SimpleNamespace(first_block=0, width=spec.blocks * spec.block_length, causal=family == "sdar")
    return Budget(spec, causal=canvas.causal), plan_blocks(spec, canvas)


def test_dream_commits_at_least_one_per_step_unless_parity_is_asked_for():
    repaired, blocks = budget(family="dream", gen_length=16, steps=16)
    published, _ = budget(family="dream", gen_length=16, steps=16, parity=["zero_commit_steps"])
    assert repaired.due(blocks[0], 0, [16], [16]) == [1]
    assert published.due(blocks[0], 0, [16], [16]) == [0]
    assert published.due(blocks[0], 15, [2], [16]) == [2]


def test_block_families_spread_the_block_not_its_masks():
    due, blocks = budget(family="sdar", gen_length=8, block_length=4, steps=4)
    assert due.due(blocks[0], 0, [1, 4], [1, 4]) == [1, 2]


@pytest.mark.parametrize(("length", "blocks"), [(16, 1), (16, 3), (32, 2), (20, 3), (100, 4), (64, 6)])
def test_ascending_steps_double_and_cover_the_response(length, blocks):
    given, plan = budget(gen_length=length, block_length=-(-length // blocks), schedule="ascending")
    assert len(plan) == blocks and plan[0].start == 0 and plan[-1].stop == length
    assert [b.stop for b in plan[:-1]] == [b.start for b in plan[1:]]
    sizes = []
    for block in plan:
        left = block.length
        for index in range(block.steps):
            (count,) = given.due(block, index, [left], [block.length])
            sizes.append(count)
            left -= count
        assert left == 0
    assert sum(sizes) == length and sizes[:-1] == [2**i for i in range(len(sizes) - 1)]


def test_rows_align_on_the_response_or_on_the_block_grid():
    network = tiny("llada")
    canvas = lay_out([[1] * 3, [1] * 7], DecodeSpec.build("llada", gen_length=8), network.config, network.device)
    assert (canvas.starts, canvas.ends, canvas.first_block) == ([7, 7], [15, 15], 7)
    assert canvas.positions_BT[0].tolist() == [0] * 4 + list(range(11))
    network = tiny("sdar")
    canvas = lay_out([[1] * 3, [1] * 9], DecodeSpec.build("sdar", gen_length=6), network.config, network.device)
    assert (canvas.starts, canvas.ends, canvas.first_block) == ([11, 9], [20, 16], 8)
    assert canvas.open_BT[1, 16:].sum() == 0 and canvas.open_BT[0].sum() == 9


def test_a_mask_in_the_prompt_is_neither_filled_nor_counted():
    network = tiny("llada")
    result = decode(network, [[5, network.config.mask_id, 9]], DecodeSpec.build("llada", gen_length=4, steps=4))[0]
    assert network.config.mask_id not in result.response
    assert (result.nfe, len(result.response)) == (4, 4)


@pytest.mark.parametrize(
    ("family", "settings", "words"),
    [
        ("llada", {"gen_length": 250}, ["prompt", "256", "gen_length = 248"]),
        ("llada", {"gen_length": 8, "cache": "block"}, ["bidirectional", "prefix"]),
        ("sdar", {"gen_length": 8}, None),
    ],
)
def test_what_the_network_cannot_do_is_refused_before_any_step(family, settings, words):
    network = tiny(family)
    given = DecodeSpec.build(family, **settings)
    if words is None:
        assert decode(network, [[1, 2, 3]], given)
        return
    with pytest.raises(UsageError) as caught:
        decode(network, [[1] * 8], given)
    assert all(word in str(caught.value) for word in words)


def test_the_spec_must_be_for_the_networks_family():
    with pytest.raises(UsageError, match="dream"):
        decode(tiny("dream"), [[1]], DecodeSpec.build("llada", gen_length=4))
    with pytest.raises(UsageError, match="row_seeds"):
        decode(tiny("dream"), [[1]], DecodeSpec.build("dream", gen_length=4), row_seeds=[1, 2])
    with pytest.raises(UsageError, match="no prompt"):
        decode(tiny("dream"), [], DecodeSpec.build("dream", gen_length=4))


def test_trim_stops_at_the_first_end_token_and_at_gen_length():
    assert trim([1, 2, 9, 3, 9], 9, (), 5) == ([1, 2], "eos")
    assert trim([1, 7, 9, 3, 9], 9, (7,), 5) == ([1], "stop_id")
    assert trim([1, 2, 3, 9], 9, (), 3) == ([1, 2, 3], "length")


def test_row_seeds_depend_on_seed_and_prompt_only():
    assert row_seed(1, [1, 2]) == row_seed(1, [1, 2]) != row_seed(2, [1, 2]) != row_seed(1, [12])
    rows, device = Rows.of([1], torch.device("cpu")), torch.device("cpu")
    alone, second = Noise([7], device), Noise([3, 7], device)
    assert torch.equal(alone.values(Rows.of([0], device), 4), second.values(rows, 4))
    # Positions have a source of their own: drawing values does not move them.
    assert torch.equal(Noise([7], device).positions(Rows.of([0], device), 3), alone.positions(Rows.of([0], device), 3))


def test_trace_holds_state_proposals_and_commits_of_the_chosen_steps():
    given = DecodeSpec.build("llada", gen_length=8, block_length=4, steps=4)
    network = tiny("llada")
    full = decode(network, prompts((3, 7)), given, record=RecordOptions())
    some = decode(network, prompts((3, 7)), given, record=RecordOptions(steps={1, 3}))
    for whole, part in zip(full, some, strict=True):
        trace = whole.trace
        assert trace.steps == [0, 1, 2, 3] and part.trace.steps == [1, 3]
        assert torch.equal(trace.state_SG[[1, 3]], part.trace.state_SG)
        for step, state, proposal, score, commit in zip(
            trace.steps, trace.state_SG, trace.proposal_SG, trace.score_SG, trace.committed_SG, strict=True
        ):
            revealed = torch.tensor(whole.step_map)
            masked = state == network.config.mask_id
            assert torch.equal(masked, revealed >= step)
            assert torch.equal(commit, revealed == step)
            assert torch.equal(proposal[commit], torch.tensor(whole.response)[commit])
            block = slice(0, 4) if step < 2 else slice(4, 8)
            assert torch.equal(proposal[block] >= 0, masked[block])
            assert torch.equal(score.isnan(), proposal < 0)
    assert decode(network, prompts((3,)), given)[0].trace is None


def test_only_positions_that_may_be_committed_pay_for_the_head():
    network = ToyNetwork(uniform(6, mask_id=5), 6, 5)
    seen = []
    network.head = lambda hidden: seen.append(hidden.shape[0]) or hidden.float().clone()
    decode(network, [[1, 2, 3]], DecodeSpec.build("llada", gen_length=8, block_length=4, steps=8))
    assert seen == [4, 3, 2, 1] * 2


def test_finished_rows_leave_the_batch():
    table = {1: [0.0, 9.0, 0.0, 0.0]}
    network = ToyNetwork(constant(table, 4), 4, 3, eos_id=1)
    given = DecodeSpec.build("llada", gen_length=6, block_length=2, steps=6, early_stop="block")
    first, second = decode(network, [[0], [0, 0, 0]], given)
    assert (first.stop, first.nfe, first.nfe_by_block) == ("eos", 2, [2, 0, 0])
    assert (second.stop, second.nfe) == ("length", 6)
    assert [shape[0] for shape in network.calls] == [2, 2, 1, 1, 1, 1]
    assert first.response[2:] == [3] * 4 and first.step_map[2:] == [-1] * 4


def test_stop_once_everything_before_the_end_token_is_committed():
    # Confidence falls from left to right, so the EOS at position 2 comes third and four masks stay.
    table = {place: [3.0 - place, 0.0, 0.0, -9.0] for place in range(1, 9)} | {3: [0.0, 0.5, 0.0, -9.0]}
    network = ToyNetwork(constant(table, 4), 4, 3, eos_id=1)
    settings = {"gen_length": 8, "block_length": 8, "steps": 8}
    result = decode(network, [[0]], DecodeSpec.build("llada", early_stop="prefix", **settings))[0]
    full = decode(network, [[0]], DecodeSpec.build("llada", **settings))[0]
    assert (result.tokens, result.stop) == (full.tokens, full.stop) == ([0, 0], "eos")
    assert result.nfe < full.nfe == 8


def test_guidance_counts_one_forward_and_pushes_away_from_the_promptless_prediction():
    def logits(ids_BT, positions_BT):
        out_BTV = torch.zeros(*ids_BT.shape, 4)
        sees_prompt = (ids_BT[:, 0] == 2).float()[:, None]
        out_BTV[..., 0] = 1.0 - 0.8 * sees_prompt
        out_BTV[..., 1] = 0.9 * torch.ones_like(sees_prompt)
        return out_BTV

    network = ToyNetwork(logits, 4, 3, eos_id=-1)
    plain = decode(network, [[0]], DecodeSpec.build("llada", gen_length=2, steps=2))[0]
    guided = decode(network, [[2]], DecodeSpec.build("llada", gen_length=2, steps=2, cfg_scale=2.0))[0]
    assert (plain.tokens, guided.tokens) == ([0, 0], [1, 1])
    assert guided.nfe == 2 and network.calls[-1] == (2, 3)


def test_shifted_network_in_blocks_is_exact_with_the_block_cache():
    """No published family shifts and is block-causal; the parts must still combine."""
    import dataclasses

    from dare_eval.networks.network import DiffusionNetwork

    source = tiny("sdar")
    network = DiffusionNetwork(dataclasses.replace(source.config, shift=True))
    network.load_state_dict(source.state_dict())
    batch = prompts((7, 12, 3))
    results = [
        decode(network, batch, DecodeSpec.build("sdar", gen_length=12, steps=12, cache=cache))
        for cache in ("none", "block")
    ]
    assert [r.response for r in results[0]] == [r.response for r in results[1]]


def test_denoiser_predicts_a_column_from_the_one_before_it_when_shifted():
    def logits(ids_BT, positions_BT):
        return positions_BT[..., None].float()

    network = ToyNetwork(logits, 4, 3, shift=True)
    spec = DecodeSpec.build("llada", **LLADA)
    canvas = lay_out([[1, 2]], spec, network.config, network.device)
    denoiser = Denoiser(network, canvas, spec)
    rows = Rows.of([0], network.device)
    hidden = denoiser.run(rows, slice(0, 6), predict_RM=torch.tensor([[0, 2, 5]]))
    assert hidden.seen_RMD.flatten().tolist() == [0.0, 1.0, 4.0] and hidden.free_RMD is None
    assert denoiser.run(rows, slice(2, 6), predict_RM=torch.tensor([[4]])).seen_RMD.item() == 3.0


@pytest.mark.parametrize("family", ["llada", "dream", "sdar", "sdar_moe", "llada2", "llada_moe"])
@pytest.mark.parametrize("kind", ["own", "padding", "blocks", "dense", "cached"])
def test_last_layer_on_wanted_columns_equals_the_whole_pass(family, kind):
    network = tiny(family)
    ids_BT = torch.tensor(prompts((12, 12)))
    keep_BT = torch.arange(12) >= torch.tensor([[0], [5]])
    arguments = {
        "own": {},
        "padding": {"mask": AttentionMask(keep_BS=keep_BT), "positions_BT": (keep_BT.cumsum(-1) - 1).clamp_min(0)},
        "blocks": {"mask": AttentionMask.block_causal(12, 4, keep_BS=keep_BT)},
        "dense": {"mask": torch.ones(12, 12).tril().bool()[None, None]},
        "cached": {"mask": AttentionMask(), "columns": slice(2, 14)},
    }[kind]
    wanted_BM = torch.tensor([[11, 3, 6], [7, 11, 10]])
    whole, picked = (
        network.body(ids_BT, **arguments, **({"cache": network.new_cache(2, 16)} if kind == "cached" else {}), **more)
        for more in ({}, {"wanted_BM": wanted_BM})
    )
    assert torch.allclose(picked, whole[torch.arange(2)[:, None], wanted_BM], atol=1e-5)


@pytest.mark.parametrize("token", [-1, 128, 10**9])
def test_token_ids_without_an_embedding_are_refused_before_a_forward(token):
    with pytest.raises(UsageError, match=rf"row 1 (.|\n)*{token}(.|\n)*0 \.\. 127"):
        decode(tiny("llada"), [[5], [7, token]], DecodeSpec.build("llada", gen_length=4))


def test_stop_ids_without_an_embedding_are_refused_before_a_forward():
    with pytest.raises(UsageError, match=r"stop_ids(.|\n)*128, 500(.|\n)*0 \.\. 127"):
        decode(tiny("llada"), [[5]], DecodeSpec.build("llada", gen_length=4, stop_ids=[7, 128, 500]))
