"""Our tasks under OpenCompass' own Slurm runner; ``srun`` is a script that runs its command here."""

from __future__ import annotations

import pytest

from tests.conftest import ROOT
from tests.runtime.configs import config, dataset, model

pytestmark = pytest.mark.xdist_group("opencompass")

SRUN = """#!/usr/bin/env bash
echo "srun: Job 77$$ scheduled successfully!" >&2
echo "$*" >> "$SRUN_LOG"
while [ "${1#-}" != "$1" ]; do
    case "$1" in -J | -p) shift ;; esac
    shift
done
exec "$@"
"""
SMALL = """
infer["partitioner"].update(num_worker=2, min_task_size=3)
infer["runner"]["partition"] = "gpu"
"""


@pytest.fixture
def slurm(workplace):
    """A work folder in which ``srun`` and ``scancel`` exist; returns it and the log of ``srun``'s arguments."""
    programs = workplace.place / "programs"
    programs.mkdir()
    for name, text in (("srun", SRUN), ("scancel", "#!/usr/bin/env bash\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    log = workplace.place / "srun.log"
    workplace.env |= {"PATH": f"{programs}:{workplace.env['PATH']}", "SRUN_LOG": str(log)}
    return workplace, log


def written(workplace, text: str):
    path = workplace.place / "slurm.py"
    path.write_text(f"{(ROOT / 'configs' / 'eval' / '_base' / 'slurm.py').read_text()}\n{text}\n")
    return path


def kept(done):
    return [
        {k: v for k, v in one.items() if k not in ("wall_s", "run_id", "batch_rows")}
        for one in done.records("sums", "add")
    ]


def test_jobs_give_what_the_fork_runner_gives_and_a_lost_one_is_done_again(slurm):
    workplace, log = slurm
    forked = workplace.run(workplace.config(config([model("sums")], [dataset()])), folder="forked")
    before = len(workplace.decoded())
    lost = model("sums", kill_at=8, run_cfg={"num_gpus": 1})
    done = workplace.run(written(workplace, config([lost], [dataset()], SMALL)), folder="slurm")
    assert done.code == 0, done.text
    assert [one["response"] for one in kept(done)] == [one["response"] for one in kept(forked)]
    assert done.row()["value"] == forked.row()["value"] == 100
    assert len(workplace.decoded()) == 2 * before
    asked = log.read_text().splitlines()
    decoding = [line for line in asked if "dare_eval.runtime.infer_task" in line]
    assert len(decoding) == 3  # two parts, one of them twice
    assert all("-p gpu" in line and "--gres=gpu:1" in line for line in decoding)
    assert any("dare_eval.runtime.eval_task" in line and "--gres" not in line for line in asked)
