"""The value part: from hidden states to one proposed token per position and the score it is ranked by.

The head runs here, in chunks, so that logits exist for few positions at a time; softmax and sums are float32 at
least. The mask is never proposed, but keeps its share of the probability in the score. Ties go to the lowest id.
Which distribution the score is read from follows the family: LLaDA, SDAR and LLaDA2 rank by the plain softmax, Dream
by the softmax after temperature and filters. Dream cuts by top-p before top-k, the others the other way round; each
as published.

Scores: ``confidence`` p(x0); ``margin`` p(1) - p(2); ``entropy`` sum p log(p + 1e-10), the negative entropy.

Legend: N positions, D width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dare_eval.decoding.denoiser import Denoiser

CHUNK_ELEMENTS = 2**24
"""Logits held at a time, in elements (64 MiB in float32)."""


class ValueSampler:
    """Draws tokens and scores them."""

    def __init__(self, denoiser: Denoiser, score: str) -> None:
        spec, config = denoiser.spec, denoiser.network.config
        self.denoiser, self.score, self.spec = denoiser, score, spec
        self.mask_id, self.eos_id, self.eot_id = config.mask_id, config.eos_id, config.eot_id
        self.filtered = spec.top_p is not None or spec.top_k is not None
        self.draws = spec.temperature > 0 or "sample_at_zero_temperature" in spec.parity
        self.scores_drawn = spec.family == "dream" or "truncated_confidence" in spec.parity
        self.chunk = max(1, CHUNK_ELEMENTS // config.vocab_size)

    def propose(self, hidden_ND: Tensor, free_ND: Tensor | None, uniform_N: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return proposed tokens [N] and their scores [N]; ``uniform_N`` are the draws at a temperature above 0."""
        pieces = []
        for start in range(0, max(hidden_ND.shape[0], 1), self.chunk):
            part = slice(start, start + self.chunk)
            logits_NV = self.denoiser.logits(hidden_ND[part], None if free_ND is None else free_ND[part])
            pieces.append(self._one_chunk(logits_NV, None if uniform_N is None else uniform_N[part]))
        if len(pieces) == 1:
            return pieces[0]
        tokens, scores = zip(*pieces, strict=True)
        return torch.cat(tokens), torch.cat(scores)

    def _one_chunk(self, logits_NV: Tensor, uniform_N: Tensor | None) -> tuple[Tensor, Tensor]:
        if self.spec.eos_rule == "logits_eos_inf":
            logits_NV[:, self.eos_id] = -torch.inf
        drawn_NV = self._shape(logits_NV)
        kept_N = drawn_NV[:, self.mask_id].clone()
        drawn_NV[:, self.mask_id] = -torch.inf
        tokens_N = drawn_NV.max(-1).indices if uniform_N is None else draw(drawn_NV, uniform_N)
        drawn_NV[:, self.mask_id] = kept_N
        return tokens_N, self._rank(drawn_NV if self.scores_drawn else logits_NV, tokens_N)

    def _shape(self, logits_NV: Tensor) -> Tensor:
        """Return the logits that tokens are drawn from: temperature, then the filters in the family's order."""
        shaped_NV = logits_NV / self.spec.temperature if self.spec.temperature > 0 else logits_NV
        if not self.filtered:
            return shaped_NV
        shaped_NV = shaped_NV.clone() if shaped_NV is logits_NV else shaped_NV
        shaped_NV[:, self.mask_id] = -torch.inf
        for name in ("top_p", "top_k") if self.spec.family == "dream" else ("top_k", "top_p"):
            if name == "top_p" and self.spec.top_p is not None:
                shaped_NV = keep_top_p(shaped_NV, self.spec.top_p)
            elif name == "top_k" and self.spec.top_k is not None:
                shaped_NV = keep_top_k(shaped_NV, self.spec.top_k)
        return shaped_NV

    def _rank(self, logits_NV: Tensor, tokens_N: Tensor) -> Tensor:
        if self.score == "none":
            return torch.zeros(tokens_N.shape, device=tokens_N.device)
        if self.score == "margin":
            top_N2 = logits_NV.softmax(-1).topk(2, dim=-1).values
            return top_N2[:, 0] - top_N2[:, 1]
        if self.score == "entropy":
            probs_NV = logits_NV.softmax(-1)
            return (probs_NV * (probs_NV + 1e-10).log()).sum(-1)
        if self.spec.eos_rule == "confidence_eos_eot_inf":
            logits_NV = self._without_ends(logits_NV)
        # One fused kernel; on the CPU many times faster than logsumexp over a vocabulary.
        return logits_NV.softmax(-1).gather(-1, tokens_N[:, None])[:, 0]

    def _without_ends(self, logits_NV: Tensor) -> Tensor:
        """Take EOS and EOT out of the softmax: their proposals get confidence 0, the others are renormalised."""
        spares_eos = self.spec.temperature > 0 and "eos_kept_when_sampling" in self.spec.parity
        for token in (None if spares_eos else self.eos_id, self.eot_id):
            if token is not None:
                logits_NV[:, token] = -torch.inf
        return logits_NV


def draw(logits_NV: Tensor, uniform_N: Tensor) -> Tensor:
    """Return one sample per row from softmax(logits) by inverting the distribution function, [N].

    One uniform number per row in float64: the sample depends on the row's own draw only.
    """
    mass_NV = (logits_NV.double() - logits_NV.amax(-1, keepdim=True).double()).exp_()
    cumulative_NV = mass_NV.cumsum(-1)
    target_N1 = (uniform_N.to(cumulative_NV.device) * cumulative_NV[:, -1])[:, None]
    # The first value whose cumulative mass exceeds the target has mass of its own.
    return torch.searchsorted(cumulative_NV, target_N1, right=True)[:, 0].clamp_max(logits_NV.shape[-1] - 1)


def keep_top_k(logits_NV: Tensor, count: int) -> Tensor:
    """Return the logits with all but the ``count`` largest at -inf; values tied with the last kept one stay."""
    least_N1 = logits_NV.topk(min(count, logits_NV.shape[-1]), dim=-1).values[:, -1:]
    return logits_NV.masked_fill(logits_NV < least_N1, -torch.inf)


def keep_top_p(logits_NV: Tensor, mass: float) -> Tensor:
    """Return the logits with everything at -inf behind the smallest set whose probability exceeds ``mass``."""
    sorted_NV, order_NV = logits_NV.sort(dim=-1, descending=True, stable=True)
    before_NV = sorted_NV.softmax(-1).cumsum(-1)
    # The value that crosses the mass stays, so a value goes when the mass before it already exceeds the bound.
    drop_NV = torch.zeros_like(before_NV, dtype=torch.bool)
    drop_NV[:, 1:] = before_NV[:, :-1] > mass
    return logits_NV.masked_fill(torch.zeros_like(drop_NV).scatter(-1, order_NV, drop_NV), -torch.inf)
