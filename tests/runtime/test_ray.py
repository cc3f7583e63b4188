"""Tasks over Ray on this machine: the fork runner's predictions, a killed worker's task done by another."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from dare_eval.errors import SetupError, UsageError
from tests.runtime.configs import config, dataset, model

pytest.importorskip("ray", reason="extra ray is not installed")
pytestmark = pytest.mark.xdist_group("opencompass")

RAY = """
from dare_eval.runtime.ray_runner import RayRunner
infer["runner"] = dict(type=RayRunner, max_num_workers=2, task=infer["runner"]["task"])
infer["partitioner"]["num_worker"] = 2
infer["partitioner"]["min_task_size"] = 3
"""


def kept(done, name="sums"):
    return [
        {k: v for k, v in one.items() if k not in ("wall_s", "run_id", "batch_rows")}
        for one in done.records(name, "add")
    ]


def test_two_workers_give_the_predictions_of_the_fork_runner(workplace):
    forked = workplace.run(workplace.config(config([model("sums")], [dataset()])), folder="forked")
    decoded = len(workplace.decoded())
    spread = workplace.run(workplace.config(config([model("sums")], [dataset()], RAY)), folder="spread")
    assert spread.code == 0, spread.text
    assert kept(spread) == kept(forked)
    assert len(workplace.decoded()) == 2 * decoded


def test_a_killed_worker_gives_its_task_to_another(workplace):
    broken = model("sums", kill_at=8)
    done = workplace.run(workplace.config(config([broken], [dataset()], RAY)))
    assert done.code == 0, done.text
    assert "lost its worker and starts again" in done.text
    assert done.row()["n"] == done.row()["expected"] == 12
    assert done.row()["value"] == 100
    assert len(workplace.decoded()) == 12


def test_a_worker_that_dies_too_often_is_a_recorded_failure(workplace):
    once = RAY.replace("max_num_workers=2", "max_num_workers=2, retries=0")
    done = workplace.run(workplace.config(config([model("sums", kill_at=8)], [dataset()], once)))
    assert done.code == 3
    assert "the worker ended with signal 9" in done.text
    again = workplace.run(workplace.config(config([model("sums", kill_at=8)], [dataset()], once)))
    assert again.code == 0
    assert again.row()["value"] == 100
    assert len(workplace.decoded()) == 12


@pytest.mark.parametrize("wrong", [{"retries": -1}, {"retries": "twice"}, {"max_num_workers": 0}])
def test_wrong_numbers_are_told(wrong):
    from dare_eval.runtime.ray_runner import RayRunner

    with pytest.raises(UsageError, match="out of range"):
        RayRunner({"type": "none"}, **wrong)


def test_a_cluster_that_cannot_be_joined_is_told():
    from dare_eval.runtime.ray_runner import _connected

    def init(**_):
        raise Exception("The current node timed out during startup")  # Ray's own, bare as it is

    away = SimpleNamespace(is_initialized=lambda: False, init=init)
    for address, said in (("10.0.0.1:6379", "cannot be joined"), (None, "does not start")):
        with pytest.raises(SetupError, match=said), _connected(away, address, 2):
            pass


def test_without_ray_the_message_names_the_extra(monkeypatch):
    from dare_eval.runtime.ray_runner import _ray

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SetupError, match="not installed") as caught:
        _ray()
    assert "dare[ray]" in caught.value.remedy
