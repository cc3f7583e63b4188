"""Which of our inferencers runs in the place of the one a data set config names.

The config and its prompt hash stay as they are; only the object that is built differs. Inferencers that are not
listed (several rounds, agents) run as upstream wrote them.
"""

from __future__ import annotations

import copy
from typing import Any

from dare_eval.errors import UsageError
from dare_eval.evaluators.benchmarks import inferencer_name
from dare_eval.inferencers.gen import DiffusionGenInferencer
from dare_eval.inferencers.item_loop import ItemContext
from dare_eval.inferencers.ll import DiffusionLLInferencer
from dare_eval.inferencers.ppl import DiffusionPPLInferencer

OURS: dict[str, type] = {
    "GenInferencer": DiffusionGenInferencer,
    "PPLInferencer": DiffusionPPLInferencer,
    "LLInferencer": DiffusionLLInferencer,
}


def check_inferencer(dataset_cfg: Any) -> None:
    """Refuse an inferencer that asks what a masked diffusion model has no answer to; raises ``UsageError``."""
    if inferencer_name(dataset_cfg) == "CLPInferencer":
        raise UsageError(
            "CLPInferencer reads the next token's distribution after a prompt; a masked diffusion model has none: "
            "its prediction for a position depends on how many masks follow",
            seen=dataset_cfg.get("abbr", dataset_cfg.get("type")),
            allowed="GenInferencer, PPLInferencer, LLInferencer",
            remedy="use the data set's *_ppl config, which compares whole options",
        )


def ranking(dataset_cfg: Any) -> str:
    """Return how the inferencer of a likelihood task compares options when nobody says otherwise."""
    return str(getattr(OURS[inferencer_name(dataset_cfg).removeprefix("Diffusion")], "rank_by", ""))


def swapped(dataset_cfg: Any, model: Any, context: ItemContext) -> Any:
    """Return the data set's ``infer_cfg`` with our inferencer, where there is one and ``model`` can work with it."""
    infer_cfg = copy.deepcopy(dataset_cfg["infer_cfg"])
    found = OURS.get(inferencer_name(dataset_cfg).removeprefix("Diffusion"))
    scores = getattr(model, "estimates_likelihood", False)
    if found is not None and (scores or found is DiffusionGenInferencer):
        infer_cfg["inferencer"]["type"] = found
        infer_cfg["inferencer"]["context"] = context
    return infer_cfg
