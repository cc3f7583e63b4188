"""A broken algorithm of an outside package: named to whoever asks for it, left out of the list of names."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint

import pytest

from dare_eval import registry
from dare_eval.errors import SetupError, UsageError
from dare_train.rl import algorithm
from dare_train.rl.algorithm import ALGORITHMS, Algorithm, algorithm_names, find_algorithm

ROOT_KIND = "dare_train.rl.algorithm:Algorithm"
A_DICT = {"name": "brk"}


@pytest.mark.parametrize("target", ["brk_missing:ALGORITHM", f"{__name__}:A_DICT"])
def test_a_broken_algorithm_is_left_out_of_the_names(monkeypatch, caplog, target):
    built_in = algorithm_names()
    targets = {name: target for name, target in ALGORITHMS._targets.items() if isinstance(target, str)}
    made = registry.Registry("algorithm", "dare.algorithms", targets, instance_of=ROOT_KIND)
    point = EntryPoint("brk", target, "dare.algorithms")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    monkeypatch.setattr(algorithm, "ALGORITHMS", made)
    with caplog.at_level(logging.WARNING):
        assert algorithm_names() == built_in == algorithm_names()
    assert [target in record.getMessage() for record in caplog.records] == [True]
    assert isinstance(find_algorithm("d1"), Algorithm)
    with pytest.raises(UsageError, match="did you mean 'd1'"):
        find_algorithm("d12")
    with pytest.raises(SetupError, match="brk = "):
        find_algorithm("brk")
