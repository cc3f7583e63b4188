"""Likelihood of a continuation under a diffusion language model: one evaluator, five estimators.

    >>> from dare_eval.decoding.likelihood import LikelihoodOptions, elbo          # doctest: +SKIP
    >>> elbo(network, [([1, 5, 9], [7, 7])], LikelihoodOptions(mc_num=128))[0]     # doctest: +SKIP

Needs torch on import; ``dare_eval.decoding`` re-exports these names lazily.
"""

from dare_eval.decoding.likelihood.elbo import elbo
from dare_eval.decoding.likelihood.options import ESTIMATORS, ElboResult, LikelihoodOptions, warn_generation_only

__all__ = ["ESTIMATORS", "ElboResult", "LikelihoodOptions", "elbo", "warn_generation_only"]
