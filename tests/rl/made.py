"""Made-up completions with everything any recorder keeps, for networks of two layers in float64."""

from __future__ import annotations

import torch

from dare_eval.errors import UsageError
from dare_train.draws import seeded
from dare_train.rl.algorithm import ALGORITHMS, algorithm_names, find_algorithm
from dare_train.rl.trajectory import Trajectory, Tree
from dare_train.rl.update import Updater
from dare_train.scorer import Scorer
from tests.train.test_scorer import MASK, TOKENS, VOCAB, network

EOS = TOKENS["eos_token_id"]
KINDS = ("masked", "shifted", "block")


def network_of(kind):
    return network(block_size=4) if kind == "block" else network()


def defined(names=None):
    """Return every (algorithm, kind of network) that is defined."""
    pairs = []
    for kind in KINDS:
        config = network_of(kind).config
        for name in names or ALGORITHMS.names():
            try:
                find_algorithm(name).resolve(config)
            except UsageError:
                continue
            pairs.append((name, kind))
    return pairs


def variants():
    """Return every named algorithm and preset that is defined on masked networks."""
    return [name for name, kind in defined(algorithm_names()) if kind == "masked"]


FEWER = {name: {"corruptor": {"rows": 4}} for name in ("bgpo", "ebpo", "elbo_grpo")}
"""Monte-Carlo rows: what holds for 4 holds for 16, in a quarter of the time."""


def update_for(name, kind, net, *, rows=7, world=None, settings=None, skip=True, pack=True):
    algorithm = find_algorithm(name).resolve(net.config).with_settings({**FEWER.get(name, {}), **(settings or {})})
    scorer = Scorer(shift=kind == "shifted", block_length=net.config.block_length, pack=pack)
    options = {"world": world} if world else {}
    return Updater(algorithm, net.config, scorer, rows_per_forward=rows, skip_without_signal=skip, **options)


def tokens(generator, *shape):
    return torch.randint(3, VOCAB, shape, generator=generator)


def tree(generator, size, rewards):
    """Return two levels of two children; each keeps what its parent has and fixes half of what is left."""
    states = [torch.full((size,), MASK)]
    parent = (-1, 0, 0, 1, 1, 2, 2)
    for node in range(1, 7):
        above = states[parent[node]]
        hidden = (above == MASK).nonzero().flatten()
        chosen = hidden if node > 2 else hidden[: (len(hidden) + 1) // 2]
        states.append(above.index_put((chosen,), tokens(generator, len(chosen))))
    return Tree(parent=parent, states_NR=torch.stack(states), leaf_rewards=tuple(rewards))


def completions(*, groups=3, size=4, seed=0, equal=False, ragged=True, response=8):
    """Return ``groups`` times ``size`` completions; prompts and EOS at unequal places unless ``ragged`` is off."""
    generator, found = seeded(seed), []
    for number in range(groups * size):
        prompt = 3 + (number // size) % 3 if ragged else 4
        answer = tokens(generator, response)
        if ragged and number % 3 == 1:
            answer[2 + number % 4 :] = EOS
        steps = torch.arange(response) // 2 if number % 2 else torch.arange(response).flip(0) // 3
        states, proposals = [], []
        for step in range(4):
            states.append(torch.where(steps >= step, MASK, answer))
            proposals.append(torch.where(states[-1] == MASK, tokens(generator, response), -1))
        draw = [1.0] * 9 if equal else [round(float(r), 2) for r in torch.rand(9, generator=generator)]
        found.append(
            Trajectory(
                prompt=tuple(tokens(generator, prompt).tolist()),
                response=tuple(answer.tolist()),
                group=number // size,
                reward=draw[0],
                step_map=tuple(steps.tolist()),
                states_KR=torch.stack(states),
                proposals_KR=torch.stack(proposals),
                confidence_KR=torch.rand(4, response, generator=generator),
                step_rewards=tuple(draw[1:5]),
                tree=tree(generator, response, draw[5:9]),
                seed=1000 + number,
            )
        )
    return found


def moved(net, size=0.02, seed=5):
    """Shift all weights, so that ratios are not 1."""
    generator = seeded(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype) * size)
    return net


def gradient(update, net, batch):
    """Return the numbers of an update and the gradient of all weights as one vector."""
    net.zero_grad()
    numbers = update.backward(net, batch)
    parts = [(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in net.parameters()]
    return numbers, torch.cat(parts)


def assert_same(left, right, *, rtol=1e-6):
    """Assert that two gradients are equal up to the float32 rounding of weights."""
    torch.testing.assert_close(left, right, rtol=rtol, atol=rtol * max(1e-6, float(right.abs().max())))


class Part:
    """One of several processes, played in turn: the first round collects what each gathers, the second gives it out."""

    def __init__(self, rank, size, book):
        self.rank, self.size, self.book, self.calls = rank, size, book, 0

    def gather(self, values):
        call, self.calls = self.calls, self.calls + 1
        mine = self.book.setdefault(call, {})
        mine[self.rank] = {key: list(found) for key, found in values.items()}
        return {key: [v for rank in sorted(mine) for v in mine[rank][key]] for key in values}
