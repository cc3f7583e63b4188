"""``dare-train sft``: supervised fine-tuning of a checkpoint, or of a small network from noise."""

from __future__ import annotations

from dare_eval.commands.options import takes
from dare_train.commands.options import VerbOptions


@takes(VerbOptions, leaving_out=["algo", "task"])
def sft(options: VerbOptions) -> None:
    """Fine-tune on prompts and answers by masked or block diffusion (LLaDA, Dream, SDAR, LLaDA2)."""
    from dare_train.commands.verb import run_verb

    run_verb("sft", options)
