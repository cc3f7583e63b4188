"""``dare-train pretrain``: masked or block diffusion over whole texts, read as a stream."""

from __future__ import annotations

from dare_eval.commands.options import takes
from dare_train.commands.options import VerbOptions


@takes(VerbOptions, leaving_out=["algo", "quantize", "task"])
def pretrain(options: VerbOptions) -> None:
    """Pretrain on plain text (from noise, or on from a checkpoint): every token may be masked."""
    from dare_train.commands.verb import run_verb

    run_verb("pretrain", options)
