"""Products of hidden states with weights, in the order that is fastest for few rows on the CPU.

Decoding multiplies one block of rows, or only its masks, with every weight; the library's usual order reads and
copies the weights more often than such a product repays. Only float32 on the CPU without gradients and autocast is
rearranged; everything else is ``functional.linear``. ``benchmarks/decode.py`` shows what it is worth.

Legend: N rows, X any leading shape of N elements, D input width, V output width, P pieces of S weight rows.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

WEIGHT_FIRST_FROM, WEIGHT_FIRST_TO = 12, 48
"""Fewest and most rows for which taking the weights first is faster (1.1 to 2.3 times, 2 threads)."""
IN_PIECES_FROM, IN_PIECES_TO = 2, 48
"""The same for large weights in pieces (1.1 to 1.5 times)."""
LARGE_WEIGHT = 2**22
"""Elements from which weights no longer fit a core's cache beside the copy that a product makes of them."""
PIECE_ELEMENTS = 160 * 2**10
"""Elements of a piece: 640 KiB stay in the second-level cache from their copy to their use."""


def product(hidden_XD: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """Return ``hidden @ weight.T + bias`` [X, V] in the fastest of three orders."""
    if _may_rearrange(hidden_XD):
        rows = hidden_XD.shape[:-1].numel()
        if weight_VD.numel() >= LARGE_WEIGHT:
            if IN_PIECES_FROM <= rows <= IN_PIECES_TO:
                return in_pieces(hidden_XD, weight_VD, bias_V)
        elif WEIGHT_FIRST_FROM <= rows <= WEIGHT_FIRST_TO:
            return weight_first(hidden_XD, weight_VD, bias_V)
    return functional.linear(hidden_XD, weight_VD, bias_V)


def _may_rearrange(hidden_XD: Tensor) -> bool:
    return (
        hidden_XD.dtype is torch.float32
        and hidden_XD.is_cpu
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


def weight_first(hidden_XD: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """Return the product as (weight @ hidden.T).T, a view in column order."""
    flat = hidden_XD.ndim == 2
    hidden_DN = (hidden_XD if flat else hidden_XD.reshape(-1, hidden_XD.shape[-1])).t()
    found_VN = torch.mm(weight_VD, hidden_DN) if bias_V is None else torch.addmm(bias_V[:, None], weight_VD, hidden_DN)
    return found_VN.t() if flat else found_VN.t().view(*hidden_XD.shape[:-1], -1)


def in_pieces(hidden_XD: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """Return the product computed piece by piece of the weights' rows."""
    width, outputs = hidden_XD.shape[-1], weight_VD.shape[0]
    hidden_ND = hidden_XD.reshape(-1, width)
    size = min(max(1, PIECE_ELEMENTS // width), outputs)
    pieces = outputs // size
    whole = pieces * size
    result_NV = hidden_ND.new_empty(hidden_ND.shape[0], outputs)
    pieces_PDS = weight_VD[:whole].view(pieces, size, width).transpose(1, 2)
    found_PNS = torch.bmm(hidden_ND.expand(pieces, -1, -1), pieces_PDS)
    result_NV[:, :whole].view(-1, pieces, size).copy_(found_PNS.transpose(0, 1))
    if whole < outputs:
        result_NV[:, whole:] = functional.linear(hidden_ND, weight_VD[whole:])
    if bias_V is not None:
        result_NV += bias_V
    return result_NV.view(*hidden_XD.shape[:-1], outputs)
