"""Makes the algorithm of a prepared run from its settings."""

from __future__ import annotations

from typing import Any

from dare_train.config import SftConfig
from dare_train.presets import resolve_objective
from dare_train.run import Prepared


def build_sft(prepared: Prepared) -> Any:
    """Return the supervised objective for the network's family, or the one the config asks for."""
    from dare_train.algorithms.sft import Sft, SftPlan

    config, network = prepared.config, prepared.plan.config
    assert isinstance(config, SftConfig)
    share = -(-config.train.batch_size // prepared.world.size)
    plan = SftPlan(
        objective=resolve_objective(config.objective, network.family, network.block_length),
        seed=config.seed,
        batch_size=config.train.batch_size,
        micro_batch_size=config.train.micro_batch_size or share,
        shuffle=config.data.shuffle,
        mask_id=network.mask_id,
        pad_id=network.pad_id,
        eos_id=network.eos_id,
        shift=network.shift,
        eos_padding=config.data.eos_padding,
        max_length=config.data.max_length,
        device=prepared.device,
    )
    return Sft(prepared.rows.train, plan, prepared.world)
