"""``dare-train preference``: pairs of answers, the better one made more likely (DPO, VRPO)."""

from __future__ import annotations

from dare_eval.commands.options import takes
from dare_train.commands.options import VerbOptions


@takes(VerbOptions, leaving_out=["task"])
def preference(options: VerbOptions) -> None:
    """Train on pairs of a better and a worse answer: vrpo (default) or dpo."""
    from dare_train.commands.names import check_algo
    from dare_train.commands.verb import run_verb

    check_algo(options.algo, "preference")
    run_verb("preference", options)
