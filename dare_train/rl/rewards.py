"""What an answer is worth: the benchmark's own verifier, a reward model, a service, or an outside package's function.

A judge is made by a factory (entry points ``dare.rewards``, or ``module:function`` by its dotted name) from the
options of the config, and then called with one ``Answer``; it returns a ``Score`` or a number. Whatever judges, the
exact score that is reported comes from the verifier. A judge that raises, answers no finite number or exceeds its
time leaves the sample unscored: counted, never a 0 in silence. Shaping terms are added to the reward and to nothing
else.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dare_eval.errors import DareError, UsageError, unknown
from dare_eval.registry import Registry
from dare_eval.scoring import UNPARSABLE_GOLD, Score, score


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to be judged."""

    prompt: str
    response: str
    scorer: str
    reference: Any
    context: Mapping[str, Any] = field(default_factory=dict)
    tokens: int = 0
    """Tokens of the response before its end."""
    limit: int = 1
    """Most tokens a response may have."""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a sample."""

    reward: float | None
    """What is trained on; None for an unscored sample."""
    exact: float | None = None
    """1 right, 0 wrong, by the verifier; None where there is no verdict."""
    credit: float | None = None
    """Graded credit of the verifier."""
    error: str = ""
    """Why the sample is unscored."""


Judge = Callable[[Answer], "Score | float"]


class JudgeFactory(Protocol):
    """What the registry holds; ``in_process`` True for judges that need this process, such as its GPU."""

    def __call__(self, **options: Any) -> Judge:
        """Return the judge."""
        ...


LARGEST = 1e9
"""Largest reward (absolute) that is believed: squares of larger ones leave float32, and no verdict means them."""

REWARDS = Registry(
    "reward",
    "dare.rewards",
    {
        "verifier": "dare_train.rl.reward_kinds:verifier",
        "model": "dare_train.rl.reward_kinds:RewardModel",
        "http": "dare_train.rl.reward_kinds:HttpReward",
    },
)


def factory_of(kind: str) -> JudgeFactory:
    """Return the factory called ``kind``, or the one at ``module:name``; ``UsageError`` when there is none."""
    if ":" not in kind:
        found: JudgeFactory = REWARDS.get(kind)
        return found
    module, _, name = kind.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"the reward cannot be imported: {error}", seen=kind, allowed="a registered name, or module:name"
        ) from error
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePlan:
    """Everything a process needs to judge samples."""

    kind: str = "verifier"
    options: Mapping[str, Any] = field(default_factory=dict)
    graded: bool = False
    shaping: Mapping[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ``UsageError`` for names that nobody knows and options that the judge's factory does not take."""
        _check_options(self.kind, factory_of(self.kind), self.options)
        for name in self.shaping:
            if name not in SHAPING:
                raise unknown("shaping term", name, SHAPING)

    def judge(self) -> Judge:
        """Return the judge; raises ``DareError`` when its factory fails or makes no function."""
        try:
            made = factory_of(self.kind)(**self.options)
        except DareError:
            raise
        except Exception as error:  # a factory may raise anything; without a judge no sample can be scored
            raise UsageError(
                f"the reward cannot be made: {type(error).__name__}: {_first_line(error)}",
                seen=f"reward.kind = {self.kind}, options {dict(self.options)}",
                remedy="repair reward.options, or the factory",
            ) from error
        if not callable(made):
            raise UsageError(
                "the reward's factory makes no function",
                seen=f"reward.kind = {self.kind}: {made!r}"[:200],
                allowed="a function from an answer to a number or a Score",
            )
        return made

    def outcome(self, judge: Judge, answer: Answer) -> Outcome:
        """Judge one answer; whatever goes wrong leaves it unscored, with the verifier's verdict where there is one."""
        verdict: Score | None = None
        try:
            verdict = score(answer.scorer, answer.response, answer.reference, **answer.context)
            if verdict.rule == UNPARSABLE_GOLD:
                return Outcome(reward=None, error=f"unusable reference: {verdict.detail.get('why', '')}")
            said = verdict if self.kind == "verifier" and not self.options else judge(answer)
            return self.priced(answer, said, verdict)
        except (Exception, SystemExit) as error:  # a judge may raise anything; the answer is counted as unscored
            known = {} if verdict is None else {"exact": float(verdict.correct), "credit": verdict.value}
            return Outcome(reward=None, error=f"{type(error).__name__}: {_first_line(error)}", **known)

    def priced(self, answer: Answer, said: Score | float, verdict: Score) -> Outcome:
        """Return the outcome of a verdict, shaping included."""
        value = (said.value if self.graded else float(said.correct)) if isinstance(said, Score) else float(said)
        if not abs(value) <= LARGEST:
            known = {"exact": float(verdict.correct), "credit": verdict.value}
            return Outcome(reward=None, error=f"the judge answered {value:g}", **known)
        extra = sum(weight * SHAPING[name](answer) for name, weight in self.shaping.items())
        return Outcome(reward=value + extra, exact=float(verdict.correct), credit=verdict.value)


def _closed_tag(sample: Answer) -> float:
    """1 for a reply with a closed answer tag."""
    return float("</answer>" in sample.response.partition("<answer>")[2])


def _shortness(sample: Answer) -> float:
    """1 for an empty reply, 0 for one that fills its limit."""
    return 1.0 - min(1.0, sample.tokens / max(1, sample.limit))


def _finished(sample: Answer) -> float:
    """1 for a reply that ends before its limit."""
    return float(sample.tokens < sample.limit)


SHAPING: dict[str, Callable[[Answer], float]] = {"format": _closed_tag, "length": _shortness, "finished": _finished}
"""Extra terms by name; all off unless ``reward.shaping`` gives a weight."""


def shaping_warning(shaping: Mapping[str, float]) -> str | None:
    """Return what a reader should know of shaping, or None when there is none."""
    if not any(shaping.values()):
        return None
    names = ", ".join(f"{name} {weight:g}" for name, weight in shaping.items())
    return f"reward shaping is on ({names}): with std advantages a policy may learn the form of an answer only"


def mean_or_none(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is there; None for nothing."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _check_options(kind: str, factory: Any, options: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` unless ``factory`` can be called with ``options``, as far as its signature tells."""
    if not callable(factory):
        raise UsageError(
            "the reward is no factory", seen=f"reward.kind = {kind}: {factory!r}"[:200], allowed="a function or class"
        )
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # written in C: it says for itself what it takes
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise UsageError(
            f"the reward's options do not fit: {error}",
            seen=f"reward.kind = {kind}, options: {', '.join(options) or 'none'}",
            allowed=str(signature).partition(" ->")[0],
            remedy="reward.options",
        ) from None


def _first_line(error: BaseException) -> str:
    text = error.what if isinstance(error, DareError) else str(error)
    return text.splitlines()[0][:300] if text else ""
