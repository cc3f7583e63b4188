"""``dare-train sft``: supervised fine-tuning of a checkpoint, or of a small network from noise."""

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
    Quantize,
    ShowConfig,
    SkipBad,
    Sp,
    ThenEval,
    Track,
)


def sft(
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
    quantize: Quantize = None,
    track: Track = None,
) -> None:
    """Fine-tune on prompts and answers by masked or block diffusion (LLaDA, Dream, SDAR, LLaDA2)."""
    from dare_train.commands.verb import Request, run_verb

    request = Request(
        verb="sft",
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
