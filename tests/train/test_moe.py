"""Mixtures of experts train: routers in float32, balance in the curve, the auxiliary loss as defined, frozen ones."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from dare_eval.networks import build_network, load_network
from dare_eval.networks.moe import probabilities
from dare_train.algorithms.build import METHODS
from dare_train.draws import seeded
from dare_train.engine.balance import freeze_routers, watch_routers
from dare_train.engine.metrics import read_metrics
from dare_train.engine.world import World
from dare_train.export import export_checkpoint
from dare_train.run import run
from tests.networks.shapes import LLADA2, LLADA_MOE, SDAR_MOE
from tests.train.conftest import weights_of
from tests.train.test_loop import gradients, quiet, state_of

IDS = ("vocab_size", "mask_token_id", "eos_token_id", "pad_token_id")
FAMILIES = {"llada_moe": LLADA_MOE, "sdar_moe": SDAR_MOE, "llada2": LLADA2}
TOKENS = torch.randint(0, 30, (2, 12), generator=seeded(4))


def architecture(family):
    return {key: value for key, value in FAMILIES[family].items() if key not in IDS}


@pytest.fixture
def moe_config(config):
    """Return the settings of a small run of ``family``."""

    def make(family, **changes):
        model = {"architecture": architecture(family), **changes.pop("model", {})}
        found = config(**changes)
        whole = {"architecture": None, **model}
        return type(found).model_validate({**found.model_dump(), "model": {**found.model.model_dump(), **whole}})

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_learns_logs_its_balance_and_comes_back_from_its_files(moe_config, family, tmp_path):
    folder = run(moe_config(family, train={"max_steps": 12}), METHODS["sft"], quiet())
    lines = read_metrics(folder.path / "metrics.jsonl")
    experts = FAMILIES[family]["num_experts"]
    assert all(1.0 <= line["router_max_load"] <= experts and 0.0 <= line["router_idle"] < 1.0 for line in lines)
    assert sum(line["loss"] for line in lines[-3:]) < sum(line["loss"] for line in lines[:3])
    network = load_network(str(folder.model))
    assert network.config.moe is not None and network.config.family == family
    saved = network.state_dict()
    exported = load_file(export_checkpoint(folder.path, tmp_path / "again") / "model.safetensors")
    assert exported.keys() == saved.keys() and all(torch.equal(exported[key], saved[key]) for key in saved)


@pytest.mark.parametrize("micro", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_splitting_a_batch_never_changes_the_gradient_with_the_auxiliary_loss_on(moe_config, family, micro):
    """The load of the step before is the same whatever the split, and the loss is a sum over tokens."""

    def slopes(**train):
        changes = {"moe": {"aux_coef": 0.5}, "train": train, "model": {"dtype": "float64"}}
        state = state_of(moe_config(family, **changes))
        for _ in range(2):
            state.network.zero_grad()
            for part in state.algorithm.work(0):
                state.algorithm.backward(state.network, part)
            numbers = state.balance.step()
        found = {name: p.grad.clone() for name, p in state.network.named_parameters()}
        return found, numbers, state.balance.before_LE

    whole, numbers, load_LE = slopes()
    split, same, split_LE = slopes(micro_batch_size=micro)
    assert numbers == pytest.approx(same) and torch.equal(load_LE, split_LE) and load_LE.any()
    for name in whole:
        torch.testing.assert_close(split[name], whole[name], rtol=1e-9, atol=1e-13)
    plain = gradients(moe_config(family, model={"dtype": "float64"}), None)
    router = next(name for name in whole if name.endswith("mlp.gate.weight"))
    assert not torch.allclose(whole[router], plain[router])


def test_auxiliary_gradient_is_that_of_the_formula():
    """coef * E * sum_e f_e P_e of one layer, f of the step before."""
    network = build_network(LLADA_MOE, generator=seeded(0), dtype=torch.float64)
    balance = watch_routers(network, 0.25, World())
    name, experts = "model.layers.1.mlp.gate.weight", LLADA_MOE["num_experts"]
    network(TOKENS).square().sum().backward()
    plain = network.get_parameter(name).grad.clone()
    balance.step()
    load_E = balance.before_LE[1]
    assert load_E.sum() == TOKENS.numel() * 2, "every token went to two experts"
    network.zero_grad()
    seen = []
    handle = network.layers[1].at("post_attention_layernorm").register_forward_hook(lambda *args: seen.append(args[2]))
    network(TOKENS).square().sum().backward()
    with_auxiliary = network.get_parameter(name).grad.clone()
    handle.remove()
    weight = network.get_parameter(name).detach().requires_grad_()
    share_NE = probabilities(seen[0].detach() @ weight.T, network.config.moe)
    loss = 0.25 * experts * (load_E / load_E.sum() * share_NE.mean(0)).sum()
    loss.backward()
    torch.testing.assert_close(with_auxiliary - plain, weight.grad, rtol=1e-7, atol=1e-12)


def test_before_the_first_step_and_without_a_weight_nothing_is_added():
    network = build_network(LLADA_MOE, generator=seeded(0), dtype=torch.float64)
    network(TOKENS).square().sum().backward()
    plain = {name: p.grad.clone() for name, p in network.named_parameters()}
    for coef in (0.0, 0.7):
        network.zero_grad()
        watch_routers(network, coef, World())
        network(TOKENS).square().sum().backward()
        assert all(torch.equal(plain[name], p.grad) for name, p in network.named_parameters())


def test_the_auxiliary_loss_evens_out_the_load(moe_config):
    def busiest(coef):
        changes = {"train": {"max_steps": 60}, "moe": {"aux_coef": coef}, "output_dir": f"{base}/{coef}"}
        folder = run(moe_config("llada_moe", optim={"schedule": "constant"}, **changes), METHODS["sft"], quiet())
        return sum(line["router_max_load"] for line in read_metrics(folder.path / "metrics.jsonl")[-20:]) / 20

    base = moe_config("llada_moe").output_dir
    assert busiest(3.0) < busiest(0.0)


def test_tokens_are_counted_once_when_layers_are_computed_again_and_not_without_gradients():
    network = build_network(SDAR_MOE, generator=seeded(0), dtype=torch.float64)
    balance = watch_routers(network, 0.0, World())
    with torch.no_grad():
        network(TOKENS)
    assert not balance.counts_LE.any()
    counts = []
    for recompute in (False, True):
        network.gradient_checkpointing = recompute
        network(TOKENS).square().sum().backward()
        counts.append(balance.counts_LE.clone())
        balance.step()
    assert torch.equal(*counts) and counts[0].sum() == 2 * TOKENS.numel() * 2


def test_the_router_stays_in_float32_when_products_do_not():
    network = build_network(LLADA_MOE, generator=seeded(0))
    router = network.layers[1].at("mlp.gate")
    hidden_ND = torch.randn(5, 32, generator=seeded(1))
    with torch.autocast("cpu", torch.bfloat16):
        scores_NE = router.scores(hidden_ND)
        assert router(hidden_ND).dtype == torch.bfloat16
    assert torch.equal(scores_NE, router.scores(hidden_ND)) and scores_NE.dtype == torch.float32


@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_routers_stay_what_they_were_and_are_exported(moe_config, family, tmp_path):
    frozen = moe_config(family, moe={"freeze_router": True}, train={"max_steps": 3})
    start = state_of(frozen).network.state_dict()
    folder = run(frozen, METHODS["sft"], quiet())
    after = weights_of(folder.path)
    routers = [name for name in after if name.endswith("mlp.gate.weight")]
    assert routers and all(torch.equal(after[name], start[name]) for name in routers)
    experts = [name for name in after if ".experts." in name]
    assert not all(torch.equal(after[name], start[name]) for name in experts)
    exported = load_file(export_checkpoint(folder.path, tmp_path / "x") / "model.safetensors")
    assert all(torch.equal(exported[name], after[name]) for name in after)


def test_freezing_a_dense_network_changes_nothing(config):
    network = state_of(config()).network
    freeze_routers(network)
    assert all(p.requires_grad for p in network.parameters())


def test_a_resumed_run_knows_the_load_of_the_step_before(moe_config):
    changes = {"moe": {"aux_coef": 0.5}, "optim": {"schedule": "constant"}}
    out = moe_config("llada_moe").output_dir
    straight = run(
        moe_config("llada_moe", output_dir=f"{out}/a", train={"max_steps": 6}, **changes), METHODS["sft"], quiet()
    )
    for steps in (3, 6):
        parts = moe_config("llada_moe", output_dir=f"{out}/b", train={"max_steps": steps}, **changes)
        resumed = run(parts, METHODS["sft"], quiet())
    left, right = weights_of(straight.path), weights_of(resumed.path)
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_adapters_spare_the_router(moe_config, tmp_path):
    base = run(moe_config("llada2"), METHODS["sft"], quiet())
    model = {"architecture": None, "tokenizer": None, "base": str(base.model), "lora": {"rank": 2}}
    folder = run(moe_config("llada2", model=model, output_dir=str(tmp_path / "l")), METHODS["sft"], quiet())
    names = load_file(folder.model / "adapter_model.safetensors")
    assert any(".experts." in name for name in names) and not any("mlp.gate.lora" in name for name in names)
    assert "router_max_load" in read_metrics(folder.path / "metrics.jsonl")[-1]
