"""What is wrong or not known about the runs, nothing left out: damaged files, missing manifests, shared ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dare_eval.records.tables import Evaluation, Result

SERIOUS = ("corrupt", "half line", "unknown version", "not a record", "missing", "failed", "damaged", "not readable")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a run."""

    run: str
    where: str
    """Folder, or model and data set."""
    what: str
    serious: bool
    """False for what is merely not known."""


def problems_of(runs: Sequence[Evaluation], results: Sequence[Result]) -> list[Problem]:
    """Return the problems of ``runs`` and of their ``results``, serious ones first."""
    names = {run.id: run.run_id for run in runs}
    found = [problem for run in runs for problem in _of_run(run)]
    found += _shared_ids(runs)
    told = {run.id: set(run.labels) for run in runs}
    for result in results:
        where = f"{result.model} on {result.dataset}"
        for label in result.labels:
            if label not in told[result.evaluation_id]:
                found.append(_problem(names[result.evaluation_id], where, label))
    unique = list(dict.fromkeys(found))  # metrics of one result share their labels
    return sorted(unique, key=lambda problem: not problem.serious)


def _of_run(run: Evaluation) -> list[Problem]:
    found = [_problem(run.run_id, run.folder, label) for label in run.labels]
    if not Path(run.folder).is_dir():
        found.append(Problem(run.run_id, run.folder, "folder is gone; its stored scores are shown all the same", True))
    if run.status in ("failed", "incomplete"):
        found.append(Problem(run.run_id, run.folder, f"the run is {run.status}", True))
    return found


def _shared_ids(runs: Sequence[Evaluation]) -> list[Problem]:
    count = Counter(run.run_id for run in runs)
    return [
        Problem(run.run_id, run.folder, f"{count[run.run_id]} folders share this id; each is shown as a run", True)
        for run in runs
        if count[run.run_id] > 1
    ]


def _problem(run: str, where: str, what: str) -> Problem:
    return Problem(run, where, what, any(word in what for word in SERIOUS))
