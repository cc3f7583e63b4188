"""The canvas: prompts and masks of a batch laid out so that blocks stand in the same columns for every row.

Two layouts. A bidirectional family counts blocks from the first response token: prompts are padded on the left
until the responses align. A block-causal family counts blocks from the first prompt token: rows are shifted by
whole blocks until the blocks that hold the first response token align. Padding is never attended to and takes no
position, so a row sees exactly what it would see alone. A mask id inside a prompt stays as it is: what may be
filled is ``open``, not every mask.

Legend: B rows, T columns, K block length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.errors import UsageError
from dare_eval.networks.config import NetworkConfig
from dare_eval.spec import DecodeSpec
from dare_eval.spec.checks import is_integer


@dataclass(slots=True, kw_only=True)
class Canvas:
    """Tokens of a batch and what is known of each column."""

    ids_BT: Tensor
    open_BT: Tensor
    """True where a token is still to be committed."""
    positions_BT: Tensor
    keep_BT: Tensor | None
    """True for real columns; None when no row is padded."""
    lengths: list[int]
    """Prompt tokens of each row."""
    starts: list[int]
    """Column of each row's first response token."""
    ends: list[int]
    """Column behind each row's last block."""
    first_block: int
    """Column where the first decoded block begins."""
    causal: bool
    """Blocks see themselves and earlier blocks only."""

    @property
    def width(self) -> int:
        """Number of columns T."""
        return self.ids_BT.shape[1]

    @property
    def rows(self) -> int:
        """Number of rows B."""
        return self.ids_BT.shape[0]

    def commit(self, committed: Sequence[Sequence[int]], config: NetworkConfig) -> None:
        """Write the first tokens of each response; a mask id stays open.

        Raises ``UsageError`` for another number of rows, a response that is too long or an id outside the vocabulary;
        nothing is written then.
        """
        if len(committed) != self.rows:
            raise UsageError(
                "committed needs one response per prompt",
                seen=f"{len(committed)} responses for {self.rows} prompts",
                allowed="as many as prompts; an empty list for a row that begins at its prompt",
            )
        check_ids(committed, config, what="committed response")
        for row, tokens in enumerate(committed):
            room = self.ends[row] - self.starts[row]
            if len(tokens) > room:
                raise UsageError(
                    f"committed responses do not fit: number {row} is longer than what is decoded",
                    seen=f"{len(tokens)} tokens",
                    allowed=f"at most {room} tokens",
                )
        for row, tokens in enumerate(committed):
            given = slice(self.starts[row], self.starts[row] + len(tokens))
            given_T = torch.tensor(list(tokens), dtype=torch.long, device=self.ids_BT.device)
            self.ids_BT[row, given], self.open_BT[row, given] = given_T, given_T == config.mask_id


def is_block_causal(config: NetworkConfig, spec: DecodeSpec) -> bool:
    """Return whether decoding is block-causal; raises ``UsageError`` when network and cache contradict each other."""
    causal = config.block_length is not None
    if causal and spec.cache in ("prefix", "dual"):
        _refuse_cache(spec.cache, "a block-causal network", "block or none", "block")
    if not causal and spec.cache == "block":
        _refuse_cache(
            spec.cache,
            "a bidirectional network: finished blocks would have to be recomputed",
            "none, prefix or dual",
            "prefix",
        )
    return causal


def _refuse_cache(cache: str, network: str, allowed: str, instead: str) -> None:
    raise UsageError(
        f"cache '{cache}' does not work for {network}",
        seen=f"cache = {cache}",
        allowed=allowed,
        remedy=f"cache = {instead}",
    )


def check_ids(rows: Sequence[Sequence[int]], config: NetworkConfig, *, what: str = "row") -> None:
    """Refuse token ids that the embedding has no row for: a GPU would stop at them without saying why."""
    for number, row in enumerate(rows):
        if not isinstance(row, Sequence) or not all(map(is_integer, row)):
            raise UsageError(
                f"{what} {number} is no list of token ids",
                seen=repr(row)[:200],
                allowed=f"a list of integers, 0 .. {config.vocab_size - 1}",
            )
        if len(row) and not 0 <= min(row) <= max(row) < config.vocab_size:
            raise UsageError(
                f"{what} {number} holds a token id outside the vocabulary",
                seen=next(token for token in row if not 0 <= token < config.vocab_size),
                allowed=f"0 .. {config.vocab_size - 1}",
                remedy="use the tokenizer that was saved with this checkpoint",
            )


def lay_out(prompts: list[list[int]], spec: DecodeSpec, config: NetworkConfig, device: torch.device) -> Canvas:
    """Return the canvas of a batch; raises ``UsageError`` for no prompt, a strange token, or one beyond the context."""
    if not prompts:
        raise UsageError("there is no prompt to decode", allowed="at least one list of token ids")
    check_ids(prompts, config)
    causal, block = is_block_causal(config, spec), spec.block_length
    lengths = [len(prompt) for prompt in prompts]
    if causal:
        base = max(length // block for length in lengths)
        pads = [(base - length // block) * block for length in lengths]
        ends = [
            pad + -(-(length + spec.gen_length) // block) * block for pad, length in zip(pads, lengths, strict=True)
        ]
        first_block = base * block
    else:
        first_block = max(lengths)
        pads = [first_block - length for length in lengths]
        ends = [first_block + spec.gen_length] * len(prompts)
    longest = max(end - pad for end, pad in zip(ends, pads, strict=True))
    _check_context(longest, max(lengths), config.canvas_length(block))
    ids_BT, open_BT = _tokens(prompts, pads, ends, config)
    column_T, pad_B1 = torch.arange(ids_BT.shape[1]), torch.tensor(pads)[:, None]
    return Canvas(
        ids_BT=ids_BT.to(device),
        open_BT=open_BT.to(device),
        positions_BT=(column_T - pad_B1).clamp_min(0).to(device),
        keep_BT=(column_T >= pad_B1).to(device) if any(pads) else None,
        lengths=lengths,
        starts=[pad + length for pad, length in zip(pads, lengths, strict=True)],
        ends=ends,
        first_block=first_block,
        causal=causal,
    )


def _tokens(prompts: list[list[int]], pads: list[int], ends: list[int], config: NetworkConfig) -> tuple[Tensor, Tensor]:
    ids_BT = torch.full((len(prompts), max(ends)), config.mask_id, dtype=torch.long)
    open_BT = torch.zeros(ids_BT.shape, dtype=torch.bool)
    for row, (prompt, pad, end) in enumerate(zip(prompts, pads, ends, strict=True)):
        ids_BT[row, :pad] = config.pad_id
        ids_BT[row, pad : pad + len(prompt)] = torch.tensor(prompt, dtype=torch.long)
        open_BT[row, pad + len(prompt) : end] = True
    return ids_BT, open_BT


def _check_context(longest: int, prompt: int, limit: int) -> None:
    if longest > limit:
        raise UsageError(
            "prompt and response are longer than the model's context",
            seen=f"prompt {prompt} tokens, {longest} with the response",
            allowed=f"at most {limit} tokens",
            remedy=f"gen_length = {limit - prompt}" if limit > prompt else "shorten the prompt (fewer shots)",
        )
