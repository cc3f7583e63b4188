"""Log-probabilities of target tokens, the one forward that every objective shares.

The head and the softmax run only at the positions asked for. Families that predict token i + 1 in row i (Dream)
are read one row earlier; position 0 keeps its own row. Block-causal networks score all blocks of a sequence at once
from the doubled sequence [noisy | clean] (BD3-LM, arXiv 2503.09573): a noisy block sees itself and the clean blocks
before it. Leaves out where the noise comes from.

Shape suffixes: B rows, T positions, S key positions, D width, V vocabulary, X chosen positions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dare_train.token_loss import target_logps


def token_logps(
    network: Any, noisy_BT: Tensor, target_BT: Tensor, chosen_BT: Tensor, valid_BT: Tensor, *, shift: bool = False
) -> Tensor:
    """Return log p(target | noisy row) at the chosen positions, row by row: float32 [X].

    ``valid_BT`` is False at padding, which no position attends to.
    """
    hidden_BTD = network.body(noisy_BT, mask=key_mask(valid_BT))
    return _logps_at(network, hidden_BTD, target_BT, chosen_BT, shift=shift)


def block_token_logps(
    network: Any,
    noisy_BT: Tensor,
    target_BT: Tensor,
    chosen_BT: Tensor,
    valid_BT: Tensor,
    *,
    block_length: int,
    trim: bool = True,
) -> Tensor:
    """Return log p(target | own noisy block, clean blocks before) at the chosen positions: float32 [X].

    With ``trim``, what cannot matter is left out of the doubled sequence: noisy blocks in which no row has a chosen
    position (the prompt), and clean blocks that no such block looks back to. The values are the same.
    """
    length = noisy_BT.shape[1]
    first, last = _block_span(chosen_BT, block_length) if trim else (0, length)
    noisy_place = torch.arange(first, min(last, length), device=noisy_BT.device)
    clean_place = torch.arange(max(last - block_length, 0) if trim else length, device=noisy_BT.device)
    place_S = torch.cat([noisy_place, clean_place])
    ids_BS = torch.cat([noisy_BT[:, noisy_place], target_BT[:, clean_place]], dim=1)
    kept_S = torch.cat([noisy_place, length + clean_place])
    mask = doubled_block_mask(length, block_length).to(noisy_BT.device)[kept_S][:, kept_S][None, None]
    if not bool(valid_BT.all()):
        mask = mask & valid_BT[:, place_S][:, None, None, :]
    hidden_BSD = network.body(ids_BS, positions_BT=place_S.expand(ids_BS.shape), mask=mask)
    shown = slice(first, min(last, length))
    hidden_BTD = hidden_BSD[:, : len(noisy_place)]
    return _logps_at(network, hidden_BTD, target_BT[:, shown], chosen_BT[:, shown], shift=False)


def _block_span(chosen_BT: Tensor, block_length: int) -> tuple[int, int]:
    """Return where the first block with a chosen position begins and the last one ends, over all rows."""
    places = chosen_BT.any(0).nonzero().flatten()
    if not len(places):
        return 0, block_length
    return int(places[0]) // block_length * block_length, (int(places[-1]) // block_length + 1) * block_length


def key_mask(valid_BT: Tensor) -> Tensor | None:
    """Return the attention mask that hides padding ([B, 1, 1, S]), or None when there is none to hide."""
    return None if bool(valid_BT.all()) else valid_BT[:, None, None, :]


def doubled_block_mask(length: int, block_length: int) -> Tensor:
    """Return who sees whom in [noisy | clean]: bool [2 length, 2 length], True = may attend.

    A noisy token sees its own noisy block and the clean blocks before it; a clean token sees the clean blocks up
    to its own. The last block may be short.
    """
    place_S = torch.arange(2 * length)
    block_S = place_S % length // block_length
    clean_S = place_S >= length
    block_q, block_k = block_S[:, None], block_S[None, :]
    clean_q, clean_k = clean_S[:, None], clean_S[None, :]
    own = (block_q == block_k) & ~clean_q & ~clean_k
    before = (block_q > block_k) & ~clean_q & clean_k
    causal = (block_q >= block_k) & clean_q & clean_k
    return own | before | causal


def _logps_at(network: Any, hidden_BTD: Tensor, target_BT: Tensor, chosen_BT: Tensor, *, shift: bool) -> Tensor:
    row_X, place_X = chosen_BT.nonzero(as_tuple=True)
    source_X = (place_X - 1).clamp_min(0) if shift else place_X
    return target_logps(network, hidden_BTD[row_X, source_X], target_BT[row_X, place_X])
