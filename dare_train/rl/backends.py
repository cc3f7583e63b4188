"""Who decodes a rollout: one protocol, the training network itself, and a scripted stand-in for tests.

    generate   prompts and seeds -> results, in order
    sync       the trained weights under their original names, with a version
    sleep      give memory back between rollouts        wake   take it again, weights included

``inprocess`` decodes with the network that is trained: no copy, nothing to sync, always on policy. Engines for block
families implement the same four calls (entry points ``dare.rollouts``: a factory from ``BackendFacts``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from dare_eval.decoding import DecodeResult, RecordOptions
from dare_eval.errors import UsageError
from dare_eval.registry import Registry
from dare_eval.spec import DecodeSpec
from dare_train.rl.gather import gather, scatter

Named = Iterable[tuple[str, Tensor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Rows to decode together."""

    prompts: list[list[int]]
    seeds: list[int]
    """One per row: rows of one prompt must differ in theirs, or they would be copies."""
    spec: DecodeSpec
    record: int = 0
    """Keep the state and the proposals of every pass of the first so many rows."""
    committed: list[list[int]] | None = None
    """Response tokens that stand already, per row; the mask id where one is still to be decoded."""

    def __post_init__(self) -> None:
        """Refuse rows that would be copies of each other."""
        rows = [(tuple(prompt), seed) for prompt, seed in zip(self.prompts, self.seeds, strict=True)]
        if len(set(rows)) < len(rows) and self.committed is None:
            raise UsageError("two rows of a rollout have the same prompt and seed, so they would be copies")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFacts:
    """What a factory of backends gets to know."""

    network: Any
    """The trained network, on its device."""
    folder: str
    """Checkpoint that the network continues ('' for none)."""
    attn_backend: str
    options: dict[str, Any] = field(default_factory=dict)
    spec: DecodeSpec | None = None
    """How the first rollouts are decoded, for engines that must know it when they start."""


class RolloutBackend(Protocol):
    """What a rollout needs of whoever decodes."""

    traces: bool
    """Whether it can keep the state of every pass; without them the rollout's own log-probabilities are unknown."""

    def generate(self, request: Request) -> list[DecodeResult]:
        """Decode every row."""
        ...

    def sync(self, named: Named, version: int) -> None:
        """Take up the weights of ``version``."""
        ...

    def sleep(self) -> None:
        """Give memory back until :meth:`wake`."""
        ...

    def wake(self) -> None:
        """Be ready to generate again."""
        ...


class InProcess:
    """Decodes with the training network, through the loop that evaluation uses."""

    traces = True

    def __init__(self, facts: BackendFacts) -> None:
        self.network, self.attn_backend, self.version = facts.network, facts.attn_backend, 0

    def generate(self, request: Request) -> list[DecodeResult]:
        """Decode every row; processes may need different numbers of passes."""
        from dare_eval.decoding import decode

        with rollout_kernel(self.network, self.attn_backend):
            return decode(
                self.network,
                request.prompts,
                request.spec,
                row_seeds=request.seeds,
                record=RecordOptions(rows=range(request.record)) if request.record else None,
                committed=request.committed,
            )

    def sync(self, named: Named, version: int) -> None:
        """Note the version: the weights are the trained ones themselves."""
        self.version = version

    def sleep(self) -> None:
        """Give back the shards of other processes."""
        scatter(self.network)

    def wake(self) -> None:
        """Hold whole weights: no pass talks to another process then."""
        gather(self.network)


BACKENDS = Registry(
    "rollout backend",
    "dare.rollouts",
    {
        "inprocess": "dare_train.rl.backends:InProcess",
        "sglang": "dare_train.rl.served:SGLangRollout",
        "lmdeploy": "dare_train.rl.colocated:LMDeployRollout",
    },
)


def check_backend(name: str, algorithm: str, recorder: str, specs: Sequence[DecodeSpec]) -> None:
    """Refuse a backend that does not keep what an algorithm records, or cannot decode as wanted.

    A factory may say both: ``recorders`` (names of ``dare_train.rl.algorithm.RECORDERS``) and ``check(spec)``; and
    ``rules(spec)``, which must be the same for all specs.
    """
    made = BACKENDS.get(name)
    kept: Sequence[str] | None = getattr(made, "recorders", None)
    if kept is not None and recorder not in kept:
        raise UsageError(
            f"{algorithm} needs more of a rollout than the engine tells",
            seen=f"rollout.backend = {name}, which keeps {', '.join(kept)}; the algorithm records {recorder}",
            allowed="final: the completion; step_map: when each token was fixed; states, tree: every pass",
            remedy="rollout.backend = inprocess for this algorithm",
        )
    check: Callable[[DecodeSpec], None] | None = getattr(made, "check", None)
    if check is not None:
        for spec in specs:
            check(spec)
    rules: Callable[[DecodeSpec], str] | None = getattr(made, "rules", None)
    if rules is not None and len(kinds := sorted({rules(spec) for spec in specs})) > 1:
        raise UsageError(
            "the engine decodes by one set of rules, and rollouts and held-out answers ask for two",
            seen=" / ".join(kinds),
            remedy="leave watch.heldout_steps out, or rollout.backend = inprocess",
        )


@contextlib.contextmanager
def rollout_kernel(network: Any, attn_backend: str) -> Iterator[None]:
    """Let the network decode with the rollout's kernel and without dropout, then be as it was."""
    before, training = network.attn_backend, network.training
    network.attn_backend = attn_backend
    network.eval()
    try:
        yield
    finally:
        network.attn_backend = before
        network.train(training)


class Scripted:
    """Answers from a function in place of a network and holds callers to the protocol; for tests of what is around it.

    It refuses to generate while asleep or before the first sync, as an engine would.
    """

    traces = True

    def __init__(self, answer: Any) -> None:
        self.answer, self.version, self.awake, self.calls = answer, -1, False, list[str]()

    def generate(self, request: Request) -> list[DecodeResult]:
        """Return what the script says for each (prompt, seed)."""
        if not self.awake or self.version < 0:
            raise UsageError("the rollout backend sleeps or has no weights yet", seen=", ".join(self.calls[-3:]))
        self.calls.append("generate")
        return [scripted(self.answer(p, s), request.spec) for p, s in zip(request.prompts, request.seeds, strict=True)]

    def sync(self, named: Named, version: int) -> None:
        """Read every weight once, as a transfer would."""
        self.calls.append(f"sync {version}, {sum(1 for _ in named)} tensors")
        self.version = version

    def sleep(self) -> None:
        """Fall asleep."""
        self.calls.append("sleep")
        self.awake = False

    def wake(self) -> None:
        """Wake up."""
        self.calls.append("wake")
        self.awake = True


def scripted(response: Sequence[int], spec: DecodeSpec) -> DecodeResult:
    """Return a result that fixed ``response`` from left to right, one token per pass."""
    count = len(response)
    return DecodeResult(
        tokens=list(response),
        nfe=count,
        nfe_by_block=[spec.block_length] * spec.blocks,
        generated_tokens=count,
        wall_s=0.0,
        step_map=list(range(count)),
        stop="length",
        response=list(response),
    )
