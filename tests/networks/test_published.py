"""The published sizes, without their weights: the module tree on the meta device against what the files contain."""

from __future__ import annotations

import pytest
import torch

from dare_eval.networks import DiffusionNetwork, make_config
from tests.networks.published import CHECKPOINTS


@pytest.mark.parametrize("name", sorted(CHECKPOINTS))
def test_the_tree_has_the_size_of_the_published_files_and_the_ids_of_the_training(name):
    facts = CHECKPOINTS[name]
    with torch.device("meta"):
        network = DiffusionNetwork(make_config(facts["config"]))
    config, state = network.config, network.state_dict()
    if "bytes" in facts:
        stored = sum(value.numel() * (4 if key.endswith("expert_bias") else 2) for key, value in state.items())
        assert stored == facts["bytes"]
    else:
        assert sum(value.numel() for value in state.values()) == facts["parameters"]
    assert (config.mask_id, config.eos_id, config.eot_id, config.bos_id) == facts["ids"]
