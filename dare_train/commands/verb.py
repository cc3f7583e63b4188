"""What every training verb does with its options: resolve settings, show or check or train them, then evaluate."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dare_eval.panels import output_console
from dare_train.settings import load_config, to_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of one command line."""

    verb: str
    config: Path | None
    overrides: list[str]
    output_dir: str | None
    show_config: bool
    dry_run: bool
    then_eval: bool
    eval_config: str | None
    baseline: str | None
    fresh: bool
    nproc: int = 1
    algo: str | None = None
    skip_bad: bool = False
    sp: int | None = None
    quantize: str | None = None
    track: list[str] | None = None

    def arguments(self) -> list[str]:
        """Return the command line that trains the same without evaluating."""
        parts = [self.verb, *(["--config", str(self.config)] if self.config else [])]
        for override in self.all_overrides():
            parts += ["--set", override]
        return [*parts, *(["--fresh"] if self.fresh else [])]

    def all_overrides(self) -> list[str]:
        """Return ``--set`` values and the options that stand for one."""
        named = {
            "algo": self.algo,
            "output_dir": self.output_dir,
            "evaluation.config": self.eval_config,
            "evaluation.baseline": self.baseline,
            "data.on_bad_row": "skip" if self.skip_bad else None,
            "train.sequence_parallel": self.sp,
            "model.quantize": self.quantize,
            "train.track": f"[{', '.join(self.track)}]" if self.track else None,
        }
        return [*self.overrides, *(f"{key}={value}" for key, value in named.items() if value is not None)]


def run_verb(request: Request) -> None:
    """Carry out ``request``."""
    from dare_train.config import VERBS

    console = output_console()
    console.quiet = os.environ.get("RANK", "0") != "0"
    config = load_config(VERBS[request.verb], request.config, request.all_overrides())
    if request.show_config:
        console.out(to_yaml(config), end="", highlight=False)
        return
    from dare_train.algorithms.build import METHODS
    from dare_train.engine.world import leave_world
    from dare_train.folder import open_folder
    from dare_train.follow_up import check_follow_up
    from dare_train.launch import launch
    from dare_train.run import run

    method = METHODS[request.verb]
    follow_up = check_follow_up(config) if request.then_eval else None
    if request.dry_run:
        from dare_train.dry_run import dry_run

        dry_run(config, method, console, processes=request.nproc)
        return
    if request.nproc > 1:
        launch(request.arguments(), request.nproc)
        folder = open_folder(config)
    else:
        folder = run(config, method, console, fresh=request.fresh)
        leave_world()
    if os.environ.get("RANK", "0") != "0":
        return
    console.print(f"model: {folder.model}", soft_wrap=True)
    _register(folder.model)
    if follow_up is not None:
        from dare_train.then_eval import evaluate_and_compare

        evaluate_and_compare(follow_up, folder.path, console)


def _register(model: Path) -> None:
    """Make the finished checkpoint known to the store: ``dare-eval ls checkpoints`` lists it."""
    from dare_eval.records.store import Store

    Store().register_checkpoint(model)
