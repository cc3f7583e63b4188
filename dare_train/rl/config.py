"""Settings of a reinforcement-learning run beside those every verb has: task, rollout, reward, what is watched.

The constants of an algorithm (clip range, KL, samples) are its own file's business; ``algorithm`` only replaces them.
No torch here.

    dare-train rl --algo cj_grpo --show-config
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dare_train.config import VERBS, Count, Positive, RunConfig, Section, setting


class TaskSettings(Section):
    """Which problems are practised, how they are asked and who judges the answers."""

    task: str = setting(..., "kind of problem: countdown, sudoku, gsm8k, math, code, or one of an outside package")
    train: str = setting(..., "problems: SOURCE[SPLIT:COUNT], joined by '+'; splits test and validation are held out")
    style: str = setting("auto", "wording of the prompt, or a text file; auto: the task's own")
    system: str = setting("", "system turn before the problem")
    fields: dict[str, str] = setting({}, "columns of the rows where they have other names than the task expects")
    context: dict[str, Any] = setting({}, "what the scorer is told with every answer, such as a policy")
    max_prompt: Positive = setting(1024, "longest accepted prompt", unit="tokens")
    on_bad_row: Literal["refuse", "skip"] = setting("refuse", "a row that cannot be used stops the run, or is counted")
    shuffle: bool = setting(True, "draw a new order in each epoch from the seed")

    @property
    def max_length(self) -> int:
        """Longest row, for planning a run whose rows cannot be read."""
        return self.max_prompt


class RolloutSettings(Section):
    """How completions are sampled; what is not set follows the family (``dare_train.rl.rollout``).

    A setting that the algorithm is defined with (JustGRPO: blocks of one token) wins over the one given here.
    """

    backend: str = setting("inprocess", "who decodes: the training network itself, or an engine")
    group_size: Positive = setting(8, "completions of one prompt", unit="completions")
    rows_per_batch: Positive | None = setting(None, "completions decoded together; null: all of a step", unit="rows")
    gen_length: Positive = setting(256, "tokens of a completion", unit="tokens")
    block_length: Positive | None = setting(None, "tokens per block; null: the family's", unit="tokens")
    steps: Positive | None = setting(None, "denoising steps, for rules that have a number of them", unit="steps")
    temperature: float | None = setting(
        None, "temperature of sampling; null: the algorithm's, or 1", unit="factor", ge=0
    )
    policy: str = setting("auto", "rule that commits tokens; auto: threshold (block families: dynamic)")
    threshold: float | None = setting(None, "confidence from which a token is committed", unit="probability")
    cache: str = setting("auto", "reuse of keys and values; auto: dual (block families: block)")
    attn_backend: Literal["auto", "sdpa", "flex", "varlen", "flash_attention_2"] = setting(
        "auto", "attention kernel of the rollout; the update has train.attn_backend"
    )
    decoding: dict[str, Any] = setting({}, "further decoding settings by name, such as top_k or eos_rule")
    options: dict[str, Any] = setting({}, "arguments of the backend, such as the address of an engine")


class RewardSettings(Section):
    """What an answer is worth."""

    kind: str = setting(
        "verifier", "who judges: verifier (the benchmark's scorer), model, http, or an outside package's"
    )
    options: dict[str, Any] = setting({}, "arguments of the judge, such as the address of the service")
    graded: bool = setting(False, "reward the scorer's graded credit instead of right or wrong")
    shaping: dict[str, float] = setting({}, "named extra terms and their weights; never part of the reported score")
    limit_s: float = setting(20.0, "time one answer may take; beyond it the sample is unscored", unit="s", gt=0)
    workers: Count = setting(1, "processes that score; 0 scores in this one, without the time limit", unit="processes")


class WatchSettings(Section):
    """What is measured beside the reward, and when a run is called collapsed."""

    rows: Count = setting(16, "completions per rollout whose entropy and rollout gap are measured", unit="completions")
    samples_every: Positive = setting(10, "distance of two rollouts whose samples are kept", unit="rollouts")
    samples: Positive = setting(4, "prompts of such a rollout whose completions are kept", unit="prompts")
    heldout_steps: Positive | None = setting(None, "denoising steps of the held-out evaluation; null: the rollout's")
    drop: float = setting(
        0.5, "fall below the best held-out score, as a share of it, that is called a collapse", unit="share", gt=0, le=1
    )
    entropy_floor: float = setting(0.01, "entropy below which the policy is called collapsed", unit="nat", ge=0)


class RlConfig(RunConfig):
    """``dare-train rl``: answers are sampled, judged, and the better ones of each prompt made more likely."""

    algo: str = setting(..., "name of the algorithm (dare-train rl --algo)")
    data: TaskSettings
    rollout: RolloutSettings = RolloutSettings()
    reward: RewardSettings = RewardSettings()
    algorithm: dict[str, Any] = Field(
        default={}, description="constants of the algorithm that replace its own", json_schema_extra={"unit": ""}
    )
    watch: WatchSettings = WatchSettings()


VERBS["rl"] = RlConfig
