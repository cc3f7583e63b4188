"""Evaluates a finished checkpoint through OpenCompass, in a process of its own, and compares it with its baseline.

The checkpoint takes the place of a model that the config names (``DARE_MODEL_<NAME>``), so the config that scored
the parent scores the child: same items, same prompts, same decoding. The baseline is evaluated the same way unless
the store knows a result of those weights on those items. Whether the evaluation read the new weights is checked
by their hash. Leaves out statistics (``dare_eval.records``) and every import of OpenCompass.
"""

from __future__ import annotations

import dataclasses
import subprocess
from collections import deque
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from dare_eval.errors import DareError, IncompleteError
from dare_eval.records.atomic import write_json
from dare_eval.records.compare import Comparison, compare_runs
from dare_eval.records.manifest import RunManifest, update_manifest
from dare_eval.records.noise import with_floors
from dare_eval.records.provenance import weight_hash
from dare_eval.records.runs import TIMESTAMP, Run, find_run, load_run
from dare_eval.records.store import Store
from dare_train.eval_check import plain_environment
from dare_train.follow_up import FollowUp, is_run_folder

TAIL_LINES = 25


def evaluate_and_compare(plan: FollowUp, folder: Path, console: Console) -> Comparison:
    """Evaluate ``folder/model``, compare it with the baseline and print both; returns the comparison.

    Raises ``IncompleteError`` when an evaluation fails or is incomplete; the checkpoint stays.
    """
    from dare_eval.commands.compare_text import show_comparison

    model = folder / "model"
    store = Store()
    store.register_checkpoint(model)
    candidate = run_evaluation(plan, model, folder / "evaluation" / folder.name, console)
    store.register_evaluation(candidate.folder)
    note_overlap(folder, candidate)
    baseline = baseline_run(plan, candidate, folder / "evaluation", store, console)
    found = compare_runs(baseline, candidate)
    found = with_floors(found, store.engine, *((run, run.results()[0][0]) for run in (baseline, candidate)))
    write_json(folder / "comparison.json", found.to_dict())
    console.print(score_table(baseline, candidate))
    show_comparison(found, console, items=5)
    console.print(f"report:     {candidate.folder / 'report.json'}", soft_wrap=True)
    console.print(f"comparison: {folder / 'comparison.json'}", soft_wrap=True)
    console.print(f"next:       dare-eval compare {baseline.folder} {candidate.folder}", soft_wrap=True)
    return found


def run_evaluation(plan: FollowUp, model: Path, work_dir: Path, console: Console) -> Run:
    """Run the evaluation config with ``model`` in place of the named one and return its run.

    An earlier attempt in ``work_dir`` is continued: items that are answered are not answered again.
    """
    from dare_eval.networks.paths import variable_names

    work_dir.mkdir(parents=True, exist_ok=True)
    console.print(f"evaluating {_short(model)} with {plan.config}", highlight=False, soft_wrap=True)
    command = [str(plan.program), str(plan.config), "-w", str(work_dir)]
    earlier = sorted(path.name for path in work_dir.iterdir() if path.is_dir() and TIMESTAMP.fullmatch(path.name))
    command += ["-r", earlier[-1]] if earlier else []
    environment = {**plain_environment(), variable_names(plan.model_name)[0]: str(model.resolve())}
    log = work_dir.with_name(f"{work_dir.name}.log")
    with log.open("w") as stream:
        done = subprocess.run(command, env=environment, stdout=stream, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        with log.open(errors="replace") as stream:
            tail = "".join(deque(stream, TAIL_LINES))
        raise IncompleteError(
            f"the evaluation ended with exit code {done.returncode}; the checkpoint is safe",
            seen=f"{' '.join(command)}\n{tail}",
            remedy=f"read {log}; the same command goes on where it stopped",
        )
    run = find_run(work_dir)
    _check_weights(run, model)
    return run


def baseline_run(plan: FollowUp, candidate: Run, folder: Path, store: Store, console: Console) -> Run:
    """Return an evaluation of the baseline on the candidate's items: named, known to the store, or made now."""
    from dare_eval.networks import resolve_model_path

    if is_run_folder(plan.baseline):
        return find_run(Path(plan.baseline))
    model = resolve_model_path(plan.baseline)
    known = stored_run(store, weight_hash(model), candidate)
    if known is not None:
        console.print(f"baseline {plan.baseline}: evaluated before in {known.folder}", highlight=False, soft_wrap=True)
        return known
    run = run_evaluation(plan, model, folder / f"baseline-{Path(plan.baseline).name}", console)
    store.register_evaluation(run.folder)
    return run


def stored_run(store: Store, weights: str, candidate: Run) -> Run | None:
    """Return the newest stored run of ``weights`` that answers all items of ``candidate`` under the same settings."""
    known = {result.evaluation_id for result in store.results(weight_hash=weights)}
    for evaluation in reversed(store.evaluations()):
        if evaluation.id not in known or not Path(evaluation.folder).is_dir():
            continue
        try:
            run = load_run(Path(evaluation.folder))
            found = compare_runs(run, candidate)
        except DareError:  # damaged, or of several models: evaluate anew
            continue
        if not found.missing and all(bench.test and not bench.labels for bench in found.benchmarks):
            return run
    return None


def note_overlap(folder: Path, run: Run) -> None:
    """Write into the training manifest how many evaluated prompts the training prompts repeat."""
    from dare_train.config import DataSettings, PairSettings, TextSettings
    from dare_train.overlap import training_overlap
    from dare_train.rl.config import TaskSettings
    from dare_train.settings import read_yaml

    record = read_yaml(folder / "config.yaml")["data"]
    kinds: dict[str, type[DataSettings | TextSettings | TaskSettings]]
    kinds = {"text_field": TextSettings, "chosen_field": PairSettings, "task": TaskSettings}
    kind = next((kind for field, kind in kinds.items() if field in record), DataSettings)
    counts = training_overlap(kind.model_validate(record), run)

    def change(manifest: RunManifest) -> RunManifest:
        return dataclasses.replace(manifest, data={**manifest.data, "overlap": counts})

    update_manifest(folder, change)


def score_table(*runs: Run) -> Table:
    """Return every score of ``runs`` with its interval and what it cost."""
    table = Table(title="Scores (percent, 95 % intervals)", title_justify="left")
    for name in ("run", "data set", "metric", "score", "interval", "n", "NFE", "tokens/s"):
        table.add_column(name, justify="left" if name in ("run", "data set", "metric") else "right")
    for run in runs:
        for row in run.report():
            interval = "-" if row.low is None else f"[{row.low:.1f}, {row.high:.1f}]"
            cost = ["-" if value is None else f"{value:,.4g}" for value in (row.nfe, row.tps)]
            score = "-" if row.value is None else f"{row.value:.1f}"
            table.add_row(run.run_id, row.dataset, row.metric, score, interval, str(row.n), *cost)
    return table


def _short(model: Path) -> str:
    """Return a shipped checkpoint's name, or the path of any other."""
    from dare_eval.networks.paths import packaged_models

    return model.name if model in packaged_models().values() else str(model)


def _check_weights(run: Run, model: Path) -> None:
    expected = weight_hash(model)
    found: dict[str, Any] = {entry.name: entry.weight_hash for entry in run.manifest.models} if run.manifest else {}
    if expected not in found.values():
        raise IncompleteError(
            "the evaluation did not read the checkpoint it was meant for",
            seen=f"weights {found}",
            allowed=f"weights {expected} ({model})",
            remedy="set evaluation.model_name to the model path that stands in the evaluation config",
        )
