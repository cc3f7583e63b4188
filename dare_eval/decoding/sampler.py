"""The value part: from hidden states to one proposed token per position and the score it is ranked by.

The head runs here, in chunks, so that logits exist for few positions at a time; softmax and sums are float32 at
least. The mask is never proposed, but keeps its share of the probability in the score. Ties go to the lowest id.
Which distribution the score is read from follows the family: LLaDA, SDAR and LLaDA2 rank by the plain softmax, Dream
by the softmax after temperature and filters. Dream cuts by top-p before top-k, the others the other way round; each
as published. Logits that are not finite are noted on the device and refused where the loop waits for it anyway.

Scores: ``confidence`` p(x0); ``margin`` p(1) - p(2); ``entropy`` sum p log(p + 1e-10), the negative entropy.

Legend: N positions, D width, V vocabulary.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dare_eval.decoding.denoiser import Denoiser
from dare_eval.errors import DareError, DataError, UsageError
from dare_eval.spec import DecodeSpec

CHUNK_ELEMENTS = 2**24
"""Logits held at a time, in elements (64 MiB in float32)."""
COLDEST = 2.0**-100
"""Temperatures below are taken as this one: the limit already, and float32 does not overflow. A power of two keeps
equal logits equal and different ones different."""


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
        self._sum: Tensor | None = None

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

    def check(self) -> None:
        """Refuse logits since the last check that were not finite; waits for the device.

        Raises ``UsageError`` under guidance, else ``DataError``.
        """
        total, self._sum = self._sum, None
        if total is not None and not math.isfinite(total.item()):
            raise not_finite(self.spec)

    def _one_chunk(self, logits_NV: Tensor, uniform_N: Tensor | None) -> tuple[Tensor, Tensor]:
        if self.spec.eos_rule == "logits_eos_inf":
            logits_NV[:, self.eos_id] = -torch.inf
        drawn_NV = self._shape(logits_NV)
        kept_N = drawn_NV[:, self.mask_id].clone()
        drawn_NV[:, self.mask_id] = -torch.inf
        if uniform_N is None:
            top_N, tokens_N = drawn_NV.max(-1)
        else:
            top_N = drawn_NV.amax(-1)
            tokens_N = draw(drawn_NV, uniform_N, top_N)
        drawn_NV[:, self.mask_id] = kept_N
        scores_N = self._rank(drawn_NV if self.scores_drawn else logits_NV, tokens_N)
        self._note(top_N, scores_N)
        return tokens_N, scores_N

    def _note(self, top_N: Tensor, scores_N: Tensor) -> None:
        """Add up what is finite exactly when every position had a best logit and a score.

        NaN anywhere in a row makes its maximum NaN; single -inf entries (filters, a barred EOS) are legitimate.
        """
        total = (top_N + scores_N).sum(dtype=torch.float64)
        self._sum = total if self._sum is None else self._sum + total

    def _shape(self, logits_NV: Tensor) -> Tensor:
        """Return the logits that tokens are drawn from: temperature, then the filters in the family's order."""
        shaped_NV = logits_NV / max(self.spec.temperature, COLDEST) if self.spec.temperature > 0 else logits_NV
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
        barred = self._barred()
        for token in barred:
            logits_NV[:, token] = -torch.inf
        # One fused kernel; on the CPU many times faster than logsumexp over a vocabulary.
        scores_N = logits_NV.softmax(-1).gather(-1, tokens_N[:, None])[:, 0]
        for token in barred:
            # Where filters left nothing but this token, the softmax above has nothing to divide by.
            scores_N = scores_N.masked_fill(tokens_N == token, 0.0)
        return scores_N

    def _barred(self) -> list[int]:
        """Return the end tokens whose proposals get confidence 0; the softmax of the others goes without them."""
        if self.spec.eos_rule != "confidence_eos_eot_inf":
            return []
        spares_eos = self.spec.temperature > 0 and "eos_kept_when_sampling" in self.spec.parity
        return [token for token in (None if spares_eos else self.eos_id, self.eot_id) if token is not None]


def not_finite(spec: DecodeSpec) -> DareError:
    """Return the error for logits that are no finite numbers."""
    what = f"the logits of a network of family '{spec.family}' are not finite: its tokens and scores mean nothing"
    seen = f"NaN or infinity, with dtype = {spec.dtype}, cfg_scale = {spec.cfg_scale:g}"
    if spec.cfg_scale > 0:
        return UsageError(
            what,
            seen=seen,
            allowed="a guidance scale whose logits stay finite",
            remedy="a smaller cfg_scale; when the error stays at cfg_scale = 0, check the weights",
        )
    narrow = spec.dtype == "float16"
    return DataError(
        what,
        seen=seen,
        allowed="finite logits for at least one token that may be proposed",
        remedy="dtype = bfloat16 or float32 (float16 overflows at 65504)" if narrow else "check the weight files",
    )


def draw(logits_NV: Tensor, uniform_N: Tensor, top_N: Tensor | None = None) -> Tensor:
    """Return one sample per row from softmax(logits) by inverting the distribution function, [N].

    One uniform number per row in float64: the sample depends on the row's own draw only. ``top_N`` are the rows'
    largest logits where the caller has them.
    """
    top_N = logits_NV.amax(-1) if top_N is None else top_N
    cumulative_NV = (logits_NV.double() - top_N[:, None].double()).exp_().cumsum(-1)
    total_N1 = cumulative_NV[:, -1:].contiguous()
    target_N1 = uniform_N.to(cumulative_NV.device)[:, None] * total_N1
    # The first value whose cumulative mass exceeds the target has mass of its own. A target rounded up to the whole
    # mass is exceeded nowhere: then it is the last value that has mass, never a barred one behind it.
    first_N1 = torch.searchsorted(cumulative_NV, target_N1, right=True)
    last_N1 = torch.searchsorted(cumulative_NV, total_N1)
    return torch.minimum(first_N1, last_N1)[:, 0].clamp_max(logits_NV.shape[-1] - 1)


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
