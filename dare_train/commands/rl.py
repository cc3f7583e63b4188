"""``dare-train rl``: answers are sampled, judged, and the better ones of each prompt made more likely."""

from __future__ import annotations

from dataclasses import replace

from dare_eval.commands.options import takes
from dare_train.commands.options import VerbOptions


@takes(VerbOptions, leaving_out=["track"])
def rl(options: VerbOptions) -> None:
    """Reinforcement learning from verifiable rewards: d1, coupled_grpo, cj_grpo, spg, ... (any unknown name lists all).

    Without --config the shipped Countdown model practises on problems that it has no solutions for, about a minute.
    """
    import dare_train.rl.config  # noqa: F401  - makes the verb known
    from dare_train.commands.names import check_algo
    from dare_train.commands.verb import run_verb

    check_algo(options.algo, "rl")
    if options.task:
        from dare_train.rl.task_settings import task_overrides

        algo = [f"algo={options.algo}"] if options.algo else []
        overrides = task_overrides(options.task, options.config, [*algo, *(options.overrides or [])])
        options = replace(options, overrides=overrides)
    run_verb("rl", options if options.config else _with_defaults(options))


def _with_defaults(options: VerbOptions) -> VerbOptions:
    """Return ``options`` with the shipped recipe of the algorithm."""
    from dare_train.rl.defaults import default_recipe, default_settings

    name = options.algo or "cj_grpo"
    settings = default_settings(name, given=bool(options.output_dir), eval_given=bool(options.eval_config))
    overrides = [*settings, *(options.overrides or [])]
    return replace(options, algo=name, config=default_recipe(name), overrides=overrides)
