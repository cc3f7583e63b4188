"""``dare-train pretrain``: masked or block diffusion over whole texts, read as a stream."""

from __future__ import annotations

from dare_train.commands.options import (
    Baseline,
    Config,
    DryRun,
    EvalConfig,
    Fresh,
    Nproc,
    OutputDir,
    Overrides,
    ShowConfig,
    SkipBad,
    Sp,
    ThenEval,
    Track,
)


def pretrain(
    config: Config = None,
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
    track: Track = None,
) -> None:
    """Pretrain on plain text (from noise, or on from a checkpoint): every token may be masked."""
    from dare_train.commands.verb import Request, run_verb

    request = Request(
        verb="pretrain",
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
        track=track,
    )
    run_verb(request)
