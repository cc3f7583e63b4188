"""The other side of a broadcast of weights: a process that joins and receives with the wheel's own code.

    python -m tests.engines.weight_receiver FILE-FOR-ITS-OWN-GROUP

Reads one request per line (the arguments of the call), answers with the sums of what arrived.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import torch
from torch import distributed

from tests.engines.wheels import code_of

UPDATER = "sglang/srt/model_executor/model_runner_components/weight_updater.py"


def answer(message: str) -> None:
    sys.stdout.write(json.dumps({"success": True, "message": message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    join = code_of("sglang", "sglang/srt/utils/common.py", "init_custom_process_group", {"torch_release": release})
    receive = code_of(
        "sglang", UPDATER, "WeightUpdater.receive_weights_from_distributed", {"torch": torch, "WeightUpdater": object}
    )
    wanted = json.loads(sys.stdin.readline())
    # The engine has a group of its own already, and stands outside of the trainer's.
    distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
    group = join(
        backend=wanted["backend"],
        init_method=f"tcp://{wanted['master_address']}:{wanted['master_port']}",
        world_size=wanted["world_size"],
        rank=wanted["rank_offset"],
        group_name=wanted["group_name"],
    )
    answer("joined")
    updater = SimpleNamespace(_model_update_group={wanted["group_name"]: group}, device="cpu")
    for line in sys.stdin:
        asked = json.loads(line)
        asked.pop("flush_cache")
        found = {name: value.double().sum().item() for name, value in receive(updater, **asked)}
        answer(json.dumps(found))


if __name__ == "__main__":
    main()
