"""What a rollout looked like: reward, score, length, order, entropy, and how far its log-probabilities are off.

Entropy is that of the whole distribution at the positions a pass revealed, not ``-log p`` of the taken token. The
gap compares log p as the rollout saw it (cached, several tokens at once) with the update's scorer on the same state:
0 where decoding is exact. Both are measured on one pass of a few completions.

Shape suffixes: B rows, T positions, X positions revealed, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dare_eval.decoding import Trace
from dare_eval.spec import DecodeSpec
from dare_eval.spec.tables import CONFIDENCE_POLICIES
from dare_train.draws import derive, seeded
from dare_train.rl.rewards import Outcome
from dare_train.rl.rollout import Rollout
from dare_train.scorer import Scorer
from dare_train.token_loss import CHUNK_LOGITS

ORDERED_ROWS = 32
"""Completions of a rollout whose order is looked at: ranks of long responses cost more than their decoding."""
Sums = dict[str, tuple[float, float]]
"""Name to (sum, count), so that processes can be added up before dividing."""


def rollout_sums(groups: Sequence[Sequence[Rollout]], outcomes: Sequence[Sequence[Outcome]]) -> Sums:
    """Return the figures of this process's completions, a group per problem."""
    rows = [rollout for group in groups for rollout in group]
    judged = [outcome for group in outcomes for outcome in group]
    rewards = [outcome.reward for outcome in judged if outcome.reward is not None]
    exact = [outcome.exact for outcome in judged if outcome.exact is not None]
    credit = [outcome.credit for outcome in judged if outcome.credit is not None]
    ordered = rows[:: max(1, len(rows) // ORDERED_ROWS)]
    orders = [order for rollout in ordered if (order := left_to_right(rollout.result.step_map)) is not None]
    flat = [float(_is_flat(group)) for group in outcomes]
    solved = [float(any(outcome.exact for outcome in group)) for group in outcomes]
    distinct = [len({rollout.text for rollout in group}) / len(group) for group in groups]
    return {
        "reward": _of(rewards),
        "exact": _of(exact),
        "credit": _of(credit),
        "any_right": _of(solved),
        "zero_variance": _of(flat),
        "distinct": _of(distinct),
        "response_tokens": _of([float(rollout.result.generated_tokens) for rollout in rows]),
        "eos_share": _of([float(rollout.result.stop != "length") for rollout in rows]),
        "nfe": _of([float(rollout.result.nfe) for rollout in rows]),
        "unmask_order": _of(orders),
        "unscored": (float(sum(outcome.reward is None for outcome in judged)), 1.0),
    }


def left_to_right(step_map: Sequence[int]) -> float | None:
    """Return Spearman's correlation of position and step: 1 left to right, -1 right to left, None for one step."""
    known = [(place, step) for place, step in enumerate(step_map) if step >= 0]
    if len({step for _, step in known}) < 2:
        return None
    place_X = torch.arange(len(known), dtype=torch.float64)
    step_X = _ranks(torch.tensor([float(step) for _, step in known], dtype=torch.float64))
    return float(torch.corrcoef(torch.stack([place_X, step_X]))[0, 1])


def _ranks(values_X: Tensor) -> Tensor:
    """Return ranks from 0, equal values sharing the mean of theirs."""
    below_X = (values_X[:, None] > values_X[None]).sum(1)
    same_X = (values_X[:, None] == values_X[None]).sum(1)
    return below_X + (same_X - 1) / 2


def _is_flat(group: Sequence[Outcome]) -> bool:
    known = {outcome.reward for outcome in group if outcome.reward is not None}
    return len(known) < 2


def _of(values: Sequence[float]) -> tuple[float, float]:
    return float(sum(values)), float(len(values))


def score_temperature(spec: DecodeSpec) -> float | None:
    """Return the temperature at which the recorded score is p(token) of the network; None where it is nothing such.

    Dream ranks by the distribution that tokens are drawn from, the other families by the plain one.
    """
    tempered = spec.family == "dream" and spec.temperature not in (0.0, 1.0)
    filtered = spec.family == "dream" and bool(spec.top_p or spec.top_k)
    known = spec.policy in CONFIDENCE_POLICIES and spec.eos_rule == "none" and spec.cfg_scale == 0.0
    return (spec.temperature if tempered else 1.0) if known and not filtered else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """Scores some states of a rollout with the update's scorer."""

    scorer: Scorer
    spec: DecodeSpec
    mask_id: int
    pad_id: int
    rows: int
    seed: int
    device: str = "cpu"

    @torch.no_grad()
    def sums(self, network: Any, rollouts: Sequence[Rollout]) -> Sums:
        """Return entropy and gap of one recorded pass of up to ``rows`` completions."""
        empty: Sums = {"entropy": (0.0, 0.0)}
        if score_temperature(self.spec) is not None:
            empty |= {"rollout_gap": (0.0, 0.0), "rollout_kl": (0.0, 0.0)}
        traced = [rollout for rollout in rollouts if rollout.result.trace is not None and rollout.result.trace.steps]
        if not traced or not self.rows:
            return empty
        found = dict(empty)
        limit = max(16, CHUNK_LOGITS // network.config.vocab_size)
        for part in _pieces([self._pick(rollout) for rollout in traced[: self.rows]], limit):
            for name, (total, count) in self._score(network, part).items():
                if name in found:
                    found[name] = found[name][0] + total, found[name][1] + count
        return found

    def _pick(self, rollout: Rollout) -> _State:
        trace = rollout.result.trace
        assert trace is not None
        generator = seeded(derive(self.seed, "watch", rollout.seed))
        place = int(torch.randint(len(trace.steps), (), generator=generator))
        return _State(list(rollout.problem.prompt), trace, place, rollout.result.response)

    def _score(self, network: Any, states: Sequence[_State]) -> Sums:
        width = max(len(state.prompt) + len(state.response) for state in states)
        noisy_BT = torch.full((len(states), width), self.pad_id)
        target_BT, valid_BT = noisy_BT.clone(), torch.zeros_like(noisy_BT, dtype=torch.bool)
        chosen_BT, seen = valid_BT.clone(), []
        for row, state in enumerate(states):
            start, end = len(state.prompt), len(state.prompt) + len(state.response)
            prompt_T = torch.tensor(state.prompt)
            noisy_BT[row, :start], target_BT[row, :start] = prompt_T, prompt_T
            noisy_BT[row, start:end] = state.trace.state_SG[state.place]
            target_BT[row, start:end] = torch.tensor(state.response)
            valid_BT[row, :end] = True
            chosen_BT[row, start:end] = state.trace.committed_SG[state.place]
            seen.append(state.trace.score_SG[state.place][state.trace.committed_SG[state.place]])
        temperature = score_temperature(self.spec) or 1.0
        listening, scorer = Listening(network, temperature), replace(self.scorer, temperature=temperature)
        tensors = (tensor.to(self.device) for tensor in (noisy_BT, target_BT, chosen_BT, valid_BT))
        logp_X = scorer(listening, *tensors).float().cpu()
        rollout_X = torch.cat(seen).clamp_min(1e-30).log()
        gap_X = rollout_X - logp_X
        return {
            "entropy": (listening.entropy, float(listening.positions)),
            "rollout_gap": (float(gap_X.abs().sum()), float(len(gap_X))),
            "rollout_kl": (float(gap_X.sum()), float(len(gap_X))),
        }


@dataclass(frozen=True, slots=True)
class _State:
    prompt: list[int]
    trace: Trace
    place: int
    response: list[int]


def _pieces(states: Sequence[_State], limit: int) -> list[list[_State]]:
    """Return the states in runs that reveal at most ``limit`` positions (a larger state stands alone)."""
    found: list[list[_State]] = []
    room = 0
    for state in states:
        count = int(state.trace.committed_SG[state.place].sum())
        if not found or count > room:
            found.append([])
            room = limit
        found[-1].append(state)
        room -= count
    return found


class Listening:
    """A network whose head also adds up the entropy of what it predicts, at temperature 1.

    ``temperature`` is what the hidden states were divided by.
    """

    def __init__(self, network: Any, temperature: float = 1.0) -> None:
        self._network, self._temperature = network, temperature
        self.entropy, self.positions = 0.0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_network", "_temperature", "entropy", "positions"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._network, name, value)

    def head(self, hidden_XD: Tensor) -> Tensor:
        """Return the logits, as the network's own head does."""
        logits_XV: Tensor = self._network.head(hidden_XD)
        logp_XV = (logits_XV.float() * self._temperature).log_softmax(-1)
        self.entropy += float(-(logp_XV.exp() * logp_XV).sum())
        self.positions += len(logp_XV)
        return logits_XV


def divided(sums: Sums) -> dict[str, float]:
    """Return means; a figure nobody measured is left out."""
    return {name: total / count for name, (total, count) in sums.items() if count}
