"""A Slurm step read without Slurm: its variables, its node list, and the template that makes one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dare_eval.errors import SetupError, UsageError
from dare_train.engine.world import plan_world
from dare_train.launch import launch
from dare_train.slurm import PORTS, first_host, port_of, slurm_variables

STEP = {
    "SLURM_JOB_ID": "123456",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "16",
    "SLURM_NTASKS": "16",
    "SLURM_PROCID": "11",
    "SLURM_LOCALID": "3",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
    "SLURM_JOB_NODELIST": "gpu[05-08]",
}


def test_a_task_of_a_step_is_read_as_torchrun_would_say_it():
    found = slurm_variables(STEP)
    assert found == {
        "WORLD_SIZE": "16",
        "RANK": "11",
        "LOCAL_RANK": "3",
        "MASTER_ADDR": "gpu07",
        "MASTER_PORT": str(port_of("123456")),
    }
    world = plan_world(16, 2, int(found["RANK"]), int(found["LOCAL_RANK"]))
    assert (world.rank, world.size, world.column_rank, world.local_rank) == (5, 8, 1, 3)


def test_an_address_that_is_set_is_kept_and_older_names_serve():
    found = slurm_variables({**STEP, "MASTER_ADDR": "head", "MASTER_PORT": "4711"})
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("head", "4711")
    older = {key: value for key, value in STEP.items() if key not in ("SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST")}
    found = slurm_variables(older)
    assert (found["WORLD_SIZE"], found["MASTER_ADDR"]) == ("16", "gpu05")


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"},
        {**STEP, "SLURM_STEP_NUM_TASKS": "1"},
        {**STEP, "WORLD_SIZE": "4", "RANK": "2"},
    ],
    ids=["no Slurm", "batch script without srun", "step of one task", "torchrun inside"],
)
def test_nothing_waits_for_others_where_there_are_none_or_another_launcher_has_spoken(environ):
    assert slurm_variables(environ) == {}


@pytest.mark.parametrize("name", ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_JOB_NODELIST"])
def test_a_variable_that_is_missing_is_named(name):
    lacking = {key: value for key, value in STEP.items() if key not in (name, "SLURM_STEP_NODELIST")}
    with pytest.raises(SetupError, match=name):
        slurm_variables(lacking)


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("gpu01", "gpu01"),
        ("gpu01,gpu02", "gpu01"),
        ("gpu[03-05,9],cpu1", "gpu03"),
        ("gpu[12]", "gpu12"),
        ("rack1-node[007-010]-ib", "rack1-node007-ib"),
        ("a[2,4-6].cluster.org,b1", "a2.cluster.org"),
        ("ip-10-0-0-1", "ip-10-0-0-1"),
    ],
)
def test_first_host_of_a_compressed_list(nodes, host):
    assert first_host(nodes) == host


@given(stem=st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), low=st.integers(0, 90), width=st.integers(1, 4))
def test_first_host_keeps_leading_zeros(stem, low, width):
    number = str(low).zfill(width)
    assert first_host(f"{stem}[{number}-{low + 5}],other") == stem + number


def test_an_empty_list_is_refused_and_ports_stay_in_range():
    with pytest.raises(SetupError, match="node list"):
        first_host("")
    assert all(port_of(str(job)) in PORTS for job in (0, 1, 9_999, 10_000, 987_654_321))


def test_more_processes_inside_a_launcher_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="another launcher"):
        launch(["sft"], 2)


def test_template_is_valid_and_starts_one_process_per_gpu_that_saves_in_time(root):
    path = root / "scripts/slurm/train.sbatch"
    text = path.read_text()
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True, check=False).returncode == 0
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=(.+)$", text, re.MULTILINE))
    assert options["ntasks-per-node"] == options["gpus-per-node"]
    assert re.fullmatch(r"USR1@\d{3}", options["signal"]), "a signal that the loop answers by saving"
    assert 'srun --kill-on-bad-exit=1 "${DARE_TRAIN:-dare-train}" "$@"' in text
    usage = subprocess.run(["bash", str(path)], capture_output=True, text=True, check=False)
    assert usage.returncode == 2 and "usage: sbatch" in usage.stderr


def test_template_hands_its_arguments_to_every_task(root, tmp_path):
    """With a stand-in for srun that starts two tasks as Slurm would."""
    srun = tmp_path / "srun"
    srun.write_text(
        "#!/usr/bin/env bash\nshift\n"
        "for id in 0 1; do SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=$id SLURM_LOCALID=$id "
        'SLURM_JOB_NODELIST="n[1-2]" "$@"; done\n'
    )
    srun.chmod(0o755)
    seen = tmp_path / "seen.py"
    seen.write_text(
        f"#!{sys.executable}\nimport os, sys\nfrom dare_train.slurm import adopt_slurm_step\nadopt_slurm_step()\n"
        "print(os.environ['RANK'], os.environ['WORLD_SIZE'], os.environ['MASTER_ADDR'], *sys.argv[1:])\n"
    )
    seen.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "DARE_TRAIN": str(seen), "PYTHONPATH": str(root)}
    command = ["bash", str(root / "scripts/slurm/train.sbatch"), "sft", "--set", "a.b=c d"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{rank} 2 n1 sft --set a.b=c d" for rank in (0, 1)], done.stderr
