"""A stock model that wants one GPU runs on the CPU of a machine without any; nothing else gives up its GPUs."""

from __future__ import annotations

import pytest

from dare_eval.runtime.devices import settled

pytestmark = pytest.mark.xdist_group("opencompass")


def task(kind: str = "dare_eval.models.llada.LLaDAModel", **settings) -> dict:
    return {"models": [{"type": kind, "abbr": "m", "path": "x", **settings}], "datasets": [[]]}


def gpus(cfg) -> int:
    return cfg["models"][0]["run_cfg"]["num_gpus"]


def test_one_gpu_is_a_wish_of_native_models():
    wanted = task(run_cfg={"num_gpus": 1})
    assert gpus(settled(wanted, 0)) == 0
    assert gpus(wanted) == 1  # the config itself stays as it is
    assert settled(wanted, 2) is wanted


@pytest.mark.parametrize(
    "other",
    [
        task(run_cfg={"num_gpus": 4}),
        task(run_cfg={"num_gpus": 1}, device="cuda"),
        task("dare_eval.models.replay.ReplayModel", run_cfg={"num_gpus": 1}),
        task("no.such.Model", run_cfg={"num_gpus": 1}),
        task(),
    ],
)
def test_others_keep_what_they_ask_for(other):
    assert settled(other, 0) is other
