"""What every training verb does with its options: resolve settings, show or check or train them, then evaluate."""

from __future__ import annotations

import os
from pathlib import Path

from dare_eval.panels import output_console
from dare_train.commands.options import VerbOptions
from dare_train.settings import load_config, to_yaml


def run_verb(verb: str, options: VerbOptions) -> None:
    """Carry out ``verb`` with its options."""
    from dare_train.config import VERBS

    console = output_console()
    console.quiet = os.environ.get("RANK", "0") != "0"
    config = load_config(VERBS[verb], options.config, options.all_overrides())
    if options.show_config:
        console.out(to_yaml(config), end="", highlight=False)
        return
    from dare_train.algorithms.build import METHODS
    from dare_train.engine.world import leave_world, plan_world
    from dare_train.folder import open_folder
    from dare_train.follow_up import check_follow_up
    from dare_train.launch import launch
    from dare_train.run import check_batch, run

    method = METHODS[verb]
    follow_up = check_follow_up(config) if options.then_eval else None
    if options.dry_run:
        from dare_train.dry_run import dry_run

        dry_run(config, method, console, processes=options.nproc)
        return
    if options.nproc > 1:
        check_batch(config, plan_world(options.nproc, config.train.sequence_parallel))
        launch([verb, *options.arguments()], options.nproc)
        folder = open_folder(config)
    else:
        folder = run(config, method, console, fresh=options.fresh)
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
