"""``dare-eval run``: one evaluation, of a config or of models and benchmarks by name.

It is checked before it starts and continued when it was interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dare_eval.commands.options import takes

if TYPE_CHECKING:
    from dare_eval.commands.run_models import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of an evaluation."""

    config: Annotated[
        Path | None,
        typer.Argument(help="OpenCompass config, such as configs/eval/tiny_sudoku.py."),
    ] = None
    model: Annotated[
        list[str] | None, typer.Option(help="Models by name (dare-eval ls models), in CONFIG's place.")
    ] = None
    bench: Annotated[list[str] | None, typer.Option(help="Their benchmarks, as in gsm8k,math500.")] = None
    suite: Annotated[list[str] | None, typer.Option(help="Named batteries of benchmarks, as in d1.")] = None
    path: Annotated[str | None, typer.Option(help="Checkpoint in the place of the model's own.")] = None
    engine: Annotated[str | None, typer.Option(help="What decodes; default native, in this process.")] = None
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Decode setting in place of the preset's: cache=dual. With --engine also url."),
    ] = None
    work_dir: Annotated[
        Path | None, typer.Option("--work-dir", "-w", help="Folder of the runs; default: the config's.")
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew even if the last run was interrupted.")] = False
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N items of each data set.")] = None
    scorer: Annotated[str | None, typer.Option(help="dare, upstream or both.")] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes per model; each data set is cut accordingly.")
    ] = None
    template: Annotated[
        int | None, typer.Option(min=1, help="Ask in the k-th of the equivalent prompt templates; 1 is the config's.")
    ] = None
    policy: Annotated[
        list[str] | None, typer.Option("--scoring-policy", help="How answers are read, as in percent=ratio.")
    ] = None
    check_only: Annotated[bool, typer.Option("--check", help="Check the config and stop.")] = False


@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Evaluate CONFIG: check it, run what is missing, print the table; exit code 3 when anything is incomplete.

    The same as opencompass CONFIG, with every class, model and data set checked first. A run that was interrupted
    is continued in its folder; --fresh starts a new one. In CONFIG's place, --model and --bench (or --suite) write
    the config into the folder of the run: dare-eval run --model llada-8b-instruct --bench gsm8k,math500
    """
    from dare_eval.commands.run_config import load_config, prepare, switches, unfinished_run
    from dare_eval.commands.run_models import chosen_config, use_path
    from dare_eval.runtime.preflight import check_config

    config = chosen_config(options.config, _names(options), options.work_dir)
    cfg = load_config(config)
    if options.config is not None and options.path is not None:
        use_path(cfg, options.path)
    folder = prepare(
        cfg,
        work_dir=options.work_dir,
        fresh=options.fresh,
        limit=options.limit,
        scorer=options.scorer,
        workers=options.workers,
    )
    if options.template:
        cfg["template"] = options.template
    if options.policy:
        cfg["scoring_policy"] = switches(options.policy)
    check_config(cfg)
    if options.check_only:
        typer.echo(f"{config}: {len(cfg['models'])} models, {len(cfg['datasets'])} data sets, all of them usable")
        return
    _check_writable(folder)
    arguments = ["-w", str(folder)]
    if not options.fresh and (earlier := unfinished_run(folder)):
        typer.echo(f"continuing {folder / earlier} (--fresh starts anew)")
        arguments += ["-r", earlier]
    _opencompass(cfg, config.name, arguments)


def _names(options: RunOptions) -> Names:
    """Return what stands in the place of a config."""
    from dare_eval.commands.run_models import Names

    return Names(
        models=options.model or (),
        benches=options.bench or (),
        suites=options.suite or (),
        changes=options.change or (),
        path=options.path,
        engine=options.engine,
    )


def _check_writable(folder: Path) -> None:
    """Refuse a folder of runs that cannot be made or written; raises ``SetupError``."""
    import os

    from dare_eval.errors import SetupError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        problem = "" if os.access(folder, os.W_OK | os.X_OK) else "no permission, or a read-only disk"
    except OSError as error:
        problem = str(error.strerror)
    if problem:
        raise SetupError(
            f"the work folder cannot be written: {problem}", seen=folder, remedy="choose another one with --work-dir"
        )


def _opencompass(cfg: Any, name: str, arguments: list[str]) -> None:
    """Run ``cfg`` by OpenCompass' own command line in this process; its ``SystemExit`` is this command's exit code."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="dare-run-") as place:
        written = Path(place) / name
        cfg.dump(str(written))
        opencompass_file(written, arguments)


def opencompass_file(config: Path, arguments: list[str]) -> None:
    """Run OpenCompass' own command line on a config file in this process."""
    import sys

    from opencompass.cli.main import main

    before: list[Any] = sys.argv
    sys.argv = ["opencompass", str(config), *arguments]
    try:
        main()
    finally:
        sys.argv = before
