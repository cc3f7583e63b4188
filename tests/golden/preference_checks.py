"""Checks of the golden files about likelihood estimates, preference losses and KL."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from dare_train.corruption import Corruption, count_noise
from dare_train.estimators import coupled_elbo, elbo, kl_estimate, preference_losses, preference_margin, row_sums
from dare_train.scorer import Scorer
from tests.golden.recorded import RecordedDraws, StoredLogits, bools

CLOSE = {"rel": 2e-5, "abs": 1e-6}


def check_pair_loss(inputs, params, expected):
    names = ("elbo_chosen", "elbo_rejected", "ref_elbo_chosen", "ref_elbo_rejected")
    for prefix, scale in (("paper", 1.0), ("dare_call", 1.0 / params["padded_response_length"])):
        chosen, *others = (torch.tensor(inputs[name]) for name in names)
        chosen.requires_grad_()
        margin = scale * preference_margin(chosen, *others)
        loss = preference_losses(margin, params["beta"]).mean()
        loss.backward()
        assert float(loss.detach()) == pytest.approx(expected[f"{prefix}_loss"], **CLOSE)
        assert chosen.grad.tolist() == pytest.approx(expected[f"{prefix}_grad_wrt_elbo_chosen"], **CLOSE)


def check_pair_loss_from_logits(inputs, params, expected):
    """Rows 2j are chosen, 2j + 1 rejected; DARE divides the estimates by the padded length R, the paper does not."""
    ids_ST, valid_ST = torch.tensor(inputs["ids"]), bools(inputs["attention_mask"])
    rows, length = params["mc"], inputs["response_len"]
    noisy_RT = torch.tensor(inputs["noisy"]).flatten(0, 1)
    masked_RT, rate_RT = bools(inputs["mask"]).flatten(0, 1), torch.tensor(inputs["p_mask"]).flatten(0, 1)
    logits_RTV = torch.tensor(inputs["logits_M_B_S_V"]).transpose(0, 1).flatten(0, 1)
    ids_RT, valid_RT = ids_ST.repeat_interleave(rows, 0), valid_ST.repeat_interleave(rows, 0)
    logp_X = Scorer(pack=False)(StoredLogits(logits_RTV), noisy_RT, ids_RT, masked_RT, valid_RT)
    value_S = elbo(logp_X, masked_RT, rate_RT, rows)
    assert value_S.tolist() == pytest.approx(expected["elbo"], **CLOSE)
    reference_S = torch.tensor(inputs["ref_elbo"])
    for name, scale in (("dare_loss", 1 / length), ("paper_loss", 1.0)):
        ours, theirs = scale * value_S, scale * reference_S
        margin_P = preference_margin(ours[::2], ours[1::2], theirs[::2], theirs[1::2])
        assert float(preference_losses(margin_P, params["beta"]).mean()) == pytest.approx(expected[name], **CLOSE)


def check_kl(inputs, params, expected):
    logp, reference = torch.tensor(inputs["logp"]), torch.tensor(inputs["ref_logp"])
    for theirs, ours in (("kl", "k1"), ("abs", "abs"), ("mse", "k2"), ("low_var_kl", "k3")):
        torch.testing.assert_close(
            kl_estimate(logp, reference, ours), torch.tensor(expected["plain"][theirs]), rtol=2e-5, atol=1e-6
        )


class Oracle:
    """An exactly conditional model: log p(x_i | the tokens that are not masked) of a tabular joint distribution."""

    def __init__(self, inputs):
        self.size, self.length = inputs["V"], inputs["L"]
        joint = torch.tensor(inputs["joint_flat_row_major"], dtype=torch.float64)
        self.joint = (joint / joint.sum()).view([self.size] * self.length)
        self.x = inputs["x"]

    def logp(self, masked_T):
        """Return log p(x_i | x outside the mask) of each masked position, in order."""
        seen = tuple(slice(None) if hidden else self.x[place] for place, hidden in enumerate(masked_T))
        table = self.joint[seen]
        places = [place for place, hidden in enumerate(masked_T) if hidden]
        found = []
        for axis, place in enumerate(places):
            other = [a for a in range(len(places)) if a != axis]
            marginal = table.sum(dim=other) if other else table
            found.append(float((marginal[self.x[place]] / table.sum()).log()))
        return found

    def logp_of(self, masked_RT):
        values = [value for row in masked_RT.tolist() for value in self.logp(row)]
        return torch.tensor(values, dtype=torch.float64)

    def exact(self):
        return float(self.joint[tuple(self.x)].log())


def all_draws(low, length, rows):
    """Yield every outcome of the start number and the permutations of ``rows`` rows."""
    orders = list(itertools.permutations(range(length)))
    for start in range(low, length + 1):
        for chosen in itertools.product(orders, repeat=rows):
            yield RecordedDraws([{"value": start}, *({"value": list(order)} for order in chosen)])


def noised(oracle, draws, rows, **settings) -> Corruption:
    ids_T = torch.tensor(oracle.x)
    return count_noise(ids_T, ids_T >= 0, draws, mask_id=oracle.size, rows=rows, **settings)


def expected_elbo(oracle, rows):
    found = []
    for draws in all_draws(1, oracle.length, rows):
        made = noised(oracle, draws, rows)
        rate = (made.masked_BT.sum(1, keepdim=True) / oracle.length).double().expand(made.masked_BT.shape)
        found.append(float(elbo(oracle.logp_of(made.masked_BT), made.masked_BT, rate, rows)))
    return sum(found) / len(found)


def expected_coupled(oracle):
    found = []
    for draws in all_draws(0, oracle.length, 1):
        part_BT = noised(oracle, draws, 1, from_zero=True).masked_BT
        masked_RT = torch.cat([part_BT, ~part_BT])
        answer_RT = torch.ones_like(masked_RT)
        found.append(float(coupled_elbo(oracle.logp_of(masked_RT).float().double(), masked_RT, answer_RT, 2)))
    return sum(found) / len(found)


def left_to_right(oracle):
    masked_RT = torch.ones(oracle.length, oracle.length, dtype=torch.bool).triu()
    logp_X = oracle.logp_of(masked_RT)
    first_X = torch.cat([torch.arange(int(row.sum())) == 0 for row in masked_RT])
    return float(row_sums(torch.where(first_X, logp_X, 0.0), masked_RT).sum())


def upper_bound(oracle, beta):
    """EUBO of SPG by enumeration: sum_i (1/beta) log E[1[i masked] p_i^beta / t]."""
    total = torch.zeros(oracle.length, dtype=torch.float64)
    count = 0
    for draws in all_draws(1, oracle.length, 1):
        masked_T = noised(oracle, draws, 1).masked_BT[0]
        share = float(masked_T.sum()) / oracle.length
        total[masked_T] += (beta * oracle.logp_of(masked_T[None])).exp() / share
        count += 1
    return float(((total / count).log() / beta).sum())


def check_oracle(inputs, params, expected):
    oracle = Oracle(inputs)
    exact = oracle.exact()
    assert exact == pytest.approx(expected["exact_logp"], abs=1e-9)
    assert expected_elbo(oracle, 1) == pytest.approx(expected["expected_elbo_LLaDA_discrete"], abs=1e-6)
    assert expected_elbo(oracle, 1) == pytest.approx(exact, abs=1e-6)
    assert expected_elbo(oracle, 2) == pytest.approx(exact, abs=1e-6), "stratified rows stay unbiased"
    assert expected_coupled(oracle) == pytest.approx(expected["expected_elbo_espo_coupled"], abs=1e-6)
    assert left_to_right(oracle) == pytest.approx(expected["justgrpo_ar_sum"], abs=1e-9)
    for beta, value in expected["eubo_sum"].items():
        assert upper_bound(oracle, float(beta)) == pytest.approx(value, abs=1e-6)
        assert value >= exact and math.isfinite(value)


PREFERENCE_CHECKS = {
    "vrpo_dpo": check_pair_loss,
    "dare_actor_vrpo": check_pair_loss_from_logits,
    "kl_estimators": check_kl,
    "property_oracle": check_oracle,
}
