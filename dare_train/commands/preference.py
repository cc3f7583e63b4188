"""``dare-train preference``: pairs of answers, the better one made more likely (DPO, VRPO)."""

from __future__ import annotations

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
    Track,
)


def preference(
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
    skip_bad: SkipBad = False,
    nproc: Nproc = 1,
    sp: Sp = None,
    quantize: Quantize = None,
    track: Track = None,
) -> None:
    """Train on pairs of a better and a worse answer: vrpo (default) or dpo."""
    from dare_train.commands.names import check_algo
    from dare_train.commands.verb import Request, run_verb

    request = Request(
        verb="preference",
        algo=check_algo(algo, "preference"),
        config=config,
        overrides=overrides or [],
        output_dir=output_dir,
        show_config=show_config,
        dry_run=dry_run,
        then_eval=then_eval,
        eval_config=eval_config,
        baseline=baseline,
        fresh=fresh,
        skip_bad=skip_bad,
        nproc=nproc,
        sp=sp,
        quantize=quantize,
        track=track,
    )
    run_verb(request)
