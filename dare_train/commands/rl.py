"""``dare-train rl``: answers are sampled, judged, and the better ones of each prompt made more likely."""

from __future__ import annotations

from pathlib import Path

from dare_train.commands.options import (
    Algo,
    Baseline,
    Config,
    DryRun,
    EvalConfig,
    Fresh,
    Nproc,
    OutputDir,
    Overrides,
    Quantize,
    ShowConfig,
    SkipBad,
    Sp,
    ThenEval,
)


def rl(
    config: Config = None,
    algo: Algo = None,
    overrides: Overrides = None,
    output_dir: OutputDir = None,
    show_config: ShowConfig = False,
    dry_run: DryRun = False,
    then_eval: ThenEval = False,
    eval_config: EvalConfig = None,
    baseline: Baseline = None,
    fresh: Fresh = False,
    nproc: Nproc = 1,
    sp: Sp = None,
    quantize: Quantize = None,
    skip_bad: SkipBad = False,
) -> None:
    """Reinforcement learning from verifiable rewards: d1, coupled_grpo, cj_grpo, spg, ... (any unknown name lists all).

    Without --config the shipped Countdown model practises on problems that it has no solutions for, about a minute.
    """
    import dare_train.rl.config  # noqa: F401  - makes the verb known
    from dare_train.commands.names import check_algo
    from dare_train.commands.verb import Request, run_verb
    from dare_train.rl.defaults import default_recipe, default_settings

    overrides = list(overrides or [])
    name = check_algo(algo, "rl")
    if config is None:
        name = name or "cj_grpo"
        config = default_recipe(name)
        overrides = [*default_settings(name, given=bool(output_dir), eval_given=bool(eval_config)), *overrides]
    request = Request(
        verb="rl",
        algo=name,
        config=Path(config),
        overrides=overrides,
        output_dir=output_dir,
        show_config=show_config,
        dry_run=dry_run,
        then_eval=then_eval,
        eval_config=eval_config,
        baseline=baseline,
        fresh=fresh,
        nproc=nproc,
        sp=sp,
        quantize=quantize,
        skip_bad=skip_bad,
    )
    run_verb(request)
