"""The methods of the command line: which settings, rows and algorithm belong to a verb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dare_eval.errors import UsageError
from dare_train.config import PreferenceConfig, PretrainConfig, RunConfig, SftConfig
from dare_train.presets import resolve_objective
from dare_train.reading import TrainingRows, read_examples, read_pair_set, read_texts
from dare_train.rl.build import build_rl
from dare_train.rl.config import RlConfig
from dare_train.rl.problems import read_problems
from dare_train.run import Prepared
from dare_train.scorer import Scorer
from dare_train.setup import ModelPlan


@dataclass(frozen=True, slots=True)
class Method:
    """One way to train: its settings, how its rows are read, and how its algorithm is made."""

    settings: type[RunConfig]
    read: Callable[[ModelPlan, Any], TrainingRows]
    build: Callable[[Prepared], Any]
    label: str

    def name(self, config: RunConfig) -> str:
        """Return the name that goes into the manifest."""
        return str(getattr(config, "algo", self.label))


def build_sft(prepared: Prepared) -> Any:
    """Return the supervised objective for the network's family, or the one the config asks for."""
    from dare_train.algorithms.sft import Sft, SftPlan

    config, network = prepared.config, prepared.plan.config
    assert isinstance(config, SftConfig | PretrainConfig)
    objective = resolve_objective(config.objective, network.family, network.block_length)
    plan = SftPlan(
        objective=objective,
        seed=config.seed,
        batch_size=config.train.batch_size,
        micro_batch_size=_micro(prepared),
        mask_id=network.mask_id,
        pad_id=network.pad_id,
        eos_id=network.eos_id,
        scorer=Scorer(shift=network.shift, block_length=objective.block_length, pack=config.train.packing),
        eos_padding=config.data.eos_padding if isinstance(config, SftConfig) else "none",
        max_length=config.data.max_length if isinstance(config, SftConfig) else config.data.sequence_length,
        device=prepared.device,
    )
    return Sft(prepared.rows.supply(config.seed), plan, prepared.world, prepared.rows.heldout)


def build_preference(prepared: Prepared) -> Any:
    """Return the pair loss; refuses block-causal networks, for which the published estimate is not defined."""
    from dare_train.algorithms.preference import DEFAULTS, Preference, PreferencePlan

    config, network = prepared.config, prepared.plan.config
    assert isinstance(config, PreferenceConfig)
    if network.block_length is not None:
        raise UsageError(
            "preference training estimates likelihoods of networks that attend in both directions",
            seen=f"family {network.family}, blocks of {network.block_length}",
            allowed="llada, llada_moe, dream",
        )
    if config.model.lora and config.model.lora.dropout:
        raise UsageError(
            "the pair loss is computed by replaying forwards, which dropout would change",
            seen=f"model.lora.dropout = {config.model.lora.dropout}",
            allowed="0",
        )
    chosen = {**DEFAULTS[config.algo], **config.preference.model_dump(exclude_none=True)}
    by_length = chosen.pop("elbo_norm") == "length"
    plan = PreferencePlan(
        algo=config.algo,
        by_length=by_length,
        seed=config.seed,
        batch_size=config.train.batch_size,
        micro_batch_size=_micro(prepared),
        mask_id=network.mask_id,
        pad_id=network.pad_id,
        scorer=Scorer(shift=network.shift, pack=config.train.packing),
        device=prepared.device,
        **chosen,
    )
    return Preference(prepared.rows.supply(config.seed), prepared.rows.heldout, plan, prepared.world)


def _micro(prepared: Prepared) -> int:
    train = prepared.config.train
    return train.micro_batch_size or -(-train.batch_size // prepared.world.size)


METHODS = {
    "pretrain": Method(PretrainConfig, read_texts, build_sft, "pretrain"),
    "sft": Method(SftConfig, read_examples, build_sft, "sft"),
    "preference": Method(PreferenceConfig, read_pair_set, build_preference, "vrpo"),
    "rl": Method(RlConfig, read_problems, build_rl, "rl"),
}
