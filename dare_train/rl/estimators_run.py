"""Samples responses of a checkpoint, measures every estimator on them, and prints what to choose."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from dare_eval.errors import UsageError
from dare_eval.panels import output_console
from dare_eval.records.atomic import write_json
from dare_train.rl.estimator_report import BLOCK, MASKED, Bench, Quality, choose_rows


def run_report(
    checkpoint: str,
    config: Path | None,
    overrides: Sequence[str],
    *,
    rows: str,
    responses: int,
    repeats: int,
    target_std: float,
    output: Path | None,
) -> None:
    """Measure and print; raises ``UsageError`` for counts that cannot be read and a file that cannot be written."""
    counts = read_counts(rows)
    if output is not None:
        _check_writable(output)
    bench = _bench(checkpoint, config, overrides, responses)
    found = bench.measure(counts, repeats)
    chosen = choose_rows(found, target_std)
    console = output_console()
    console.print(_table(found, bench))
    for name, count in chosen.items():
        console.print(f"{name}: {count} rows for a spread of at most {target_std:g} nats", highlight=False)
    if output is not None:
        record = {"checkpoint": checkpoint, "target_std": target_std, "rows": chosen}
        write_json(output, {**record, "quality": [asdict(quality) for quality in found]})


def read_counts(text: str) -> list[int]:
    """Return the whole numbers in ``text``; raises ``UsageError``."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdigit() and int(part) for part in parts):
        raise UsageError("numbers of rows cannot be read", seen=text, allowed="whole numbers above 0, as 1,2,4")
    return sorted({int(part) for part in parts})


def _check_writable(output: Path) -> None:
    """Raise ``UsageError`` before the work when its result could not be kept."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
        why = "it is a folder" if output.is_dir() else ""
    except OSError as error:
        why = str(error.strerror)
    if why:
        raise UsageError(f"the result cannot be written: {why}", seen=f"--output {output}", remedy="another --output")


def _bench(checkpoint: str, config: Path | None, overrides: Sequence[str], responses: int) -> Bench:
    """Return the network with responses sampled as the config's rollout does."""
    import dare_train.rl.config as settings
    from dare_eval.networks import load_network, read_config, resolve_model_path
    from dare_train.rl.backends import BackendFacts, InProcess
    from dare_train.rl.problems import read_problems
    from dare_train.rl.records import trajectory_of
    from dare_train.rl.rewards import Outcome
    from dare_train.rl.rollout import Sampler, rollout_spec
    from dare_train.scorer import Scorer
    from dare_train.settings import load_config
    from dare_train.setup import choose_device, plan_model

    facts = read_config(resolve_model_path(checkpoint))
    path = config or _recipe(facts.block_length is not None)
    found = load_config(settings.RlConfig, path, [f"model.base={checkpoint}", *overrides])
    plan = plan_model(found.model)
    problems = read_problems(plan, found.data).kept[:responses]
    network = load_network(str(plan.folder), dtype=found.model.dtype).to(choose_device(found.train.device)).eval()
    sampler = Sampler(
        backend=InProcess(BackendFacts(network=network, folder=checkpoint, attn_backend=found.rollout.attn_backend)),
        tokenizer=plan.tokenizer,
        spec=rollout_spec(found.rollout, facts, {}),
        group_size=1,
        rows_per_batch=found.rollout.rows_per_batch,
        seed=found.seed,
    )
    rollouts = sampler.groups(list(enumerate(problems)), states=False)
    trajectories = [trajectory_of(rollout, Outcome(reward=0.0), sampler.spec, states=False) for rollout in rollouts]
    scorer = Scorer(shift=facts.shift, block_length=facts.block_length)
    return Bench(network=network, scorer=scorer, trajectories=trajectories, seed=found.seed)


def _recipe(blocks: bool) -> Path:
    from dare_train.rl.defaults import BLOCK as BLOCK_RECIPE
    from dare_train.rl.defaults import MASKED as MASKED_RECIPE
    from dare_train.rl.defaults import packaged

    return packaged("train", "rl", f"{BLOCK_RECIPE if blocks else MASKED_RECIPE}.yaml")


def _table(found: Sequence[Quality], bench: Bench) -> Table:
    about = {estimator.name: estimator.about for estimator in (*MASKED, *BLOCK)}
    tokens = found[0].tokens
    title = f"Estimates of the likelihood bound of {len(bench.trajectories)} responses of {tokens:.1f} tokens, in nats"
    table = Table(title=title, title_justify="left")
    for head in ("estimator", "rows", "bias", "error of bias", "spread", "spread per token", "what"):
        table.add_column(head, justify="left" if head in ("estimator", "what") else "right")
    for quality in found:
        values = [f"{quality.bias:+.3f}", f"{quality.bias_error:.3f}", f"{quality.std:.3f}"]
        each = f"{quality.std / quality.tokens:.3f}"
        table.add_row(quality.estimator, str(quality.rows), *values, each, about[quality.estimator])
    return table
