"""Weights by broadcast: real processes and gloo, the receiving side is the wheel's own code."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest
import torch

from dare_eval.engines.ends import EndIds
from dare_eval.engines.sglang_broadcast import WeightGroup, WeightPeers
from dare_eval.engines.sglang_clients import SGLangDecoder
from dare_eval.errors import SetupError, UsageError
from dare_eval.networks import load_network
from dare_train.rl.backends import BackendFacts
from dare_train.rl.served import SGLangRollout, _peers
from tests.conftest import ROOT
from tests.engines.wheels import wheel


class Receiver:
    """``Calls`` of an engine that is a process beside this one."""

    def __init__(self, folder):
        self.asked, self.received, self.labels = [], {}, []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.weight_receiver", str(folder / "group")],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def do(self, name, /, **arguments):
        self.asked.append(name)
        if name in ("begin_weight_update", "end_weight_update"):
            return {"success": True, "message": ""}
        if label := arguments.pop("weight_version", None):
            self.labels.append(label)  # kept by the server's other process, not by the one that receives
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if name == "update_weights_from_distributed":
            self.received |= json.loads(reply["message"])
        return reply


@pytest.fixture
def receiver(tmp_path):
    wheel("sglang")
    made = Receiver(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_every_weight_arrives_under_its_name(receiver):
    named = [(f"layer.{n}", torch.full((2, n + 1), n + 0.5, dtype=torch.bfloat16)) for n in range(5)]
    decoder = SGLangDecoder(receiver, EndIds(eos_id=1, eot_id=None, stop_ids=(1,)))
    group = WeightGroup(receiver, WeightPeers(address="127.0.0.1", port=free_port(), backend="gloo", timeout_s=60))
    for scale in (1.0, 2.0):
        with decoder.session():
            group.send([(name, value * scale) for name, value in named], limit=16, label=f"run-{scale}")
        assert receiver.received == {name: (value * scale).double().sum().item() for name, value in named}
    assert receiver.asked[:3] == ["init_weights_update_group", "begin_weight_update", "update_weights_from_distributed"]
    assert receiver.labels == ["run-1.0", "run-2.0"]
    assert receiver.asked[-1] == "end_weight_update" and receiver.asked.count("begin_weight_update") == 2
    group.close()


def test_an_engine_that_refuses_is_an_error(monkeypatch):
    class Refuses:
        def do(self, name, /, **arguments):
            return {"success": False, "message": "data-parallel replicas"}

    monkeypatch.setattr("dare_eval.engines.sglang_broadcast.join", lambda peers, rank: None)
    with pytest.raises(SetupError, match="did not take the group"):
        WeightGroup(Refuses(), WeightPeers(address="127.0.0.1", port=1))


def test_an_engine_that_does_not_come_is_told():
    class Absent:
        def do(self, name, /, **arguments):
            return {"success": False, "message": "no route to host"}

    with pytest.raises(SetupError, match=r"did not (take|come for) the group"):
        WeightGroup(Absent(), WeightPeers(address="127.0.0.1", port=free_port(), backend="gloo", timeout_s=0.5))


@pytest.mark.parametrize("options", [{"meet": "host"}, {"meet": "host:x"}, {"meet": "h:1", "ranks": 0}])
def test_a_place_to_meet_is_checked(options):
    with pytest.raises(UsageError, match="no place to meet"):
        _peers(options)


def test_a_folder_and_a_place_to_meet_exclude_each_other(tmp_path):
    options = {"url": "http://127.0.0.1:9", "folder": str(tmp_path), "meet": "127.0.0.1:29600"}
    network = load_network("tiny-bd-countdown")
    with pytest.raises(UsageError, match="a place to meet"):
        SGLangRollout(BackendFacts(network=network, folder="tiny-bd-countdown", attn_backend="auto", options=options))
