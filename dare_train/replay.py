"""Gradients of any function of many forwards, at the memory of one forward.

First every chunk's values are computed without a graph and the function is differentiated with respect to them;
then each chunk is computed once more and its values are pulled with those derivatives. Exact when a forward gives
the same values twice (no dropout); costs one more forward. This is what keeps memory flat in the number of
Monte-Carlo samples, also for objectives that are not a sum over them.

Shape suffix: X values of all chunks, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Score = Callable[[], Tensor]
"""Computes the values of one chunk, [x]."""


def replay_backward(
    chunks: Sequence[Score], objective: Callable[[Tensor], Tensor], *, skip_idle: bool = True
) -> Tensor:
    """Add the gradient of ``objective(values)`` and return its value.

    ``objective`` gets the values of all chunks, concatenated, and returns a scalar. With ``skip_idle``, chunks
    whose values do not matter (zero derivatives) are not computed again; processes that share a network must not skip.
    """
    with torch.no_grad():
        values = [chunk() for chunk in chunks]
    leaf_X = torch.cat(values).requires_grad_()
    loss = objective(leaf_X)
    (slope_X,) = torch.autograd.grad(loss, leaf_X)
    slopes = torch.split(slope_X, [len(value) for value in values])
    for chunk, slope in zip(chunks, slopes, strict=True):
        if not skip_idle or slope.count_nonzero():
            torch.autograd.backward(chunk(), slope)
    return loss.detach()
