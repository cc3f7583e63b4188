"""``LikelihoodModel``: what makes a native wrapper score text as well as generate it.

Prompts of turns go through the chat template with the last turn left open; a prompt that is one text is scored as
it is, by chat wrappers too, since nothing in it says where a turn would begin. ``get_ppl`` and ``get_loglikelihood``
are what upstream's inferencers call; ours use :meth:`LikelihoodModel.log_likelihoods`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dare_eval.decoding.likelihood.options import ElboResult
from dare_eval.errors import DataError
from dare_eval.inferencers.likelihood import LikelihoodTask, check_finite
from dare_eval.inferencers.options import Pair, split_after
from dare_eval.models.texts import check_text, messages
from dare_eval.models.tokens import Codec


class LikelihoodModel:
    """Mixin of ``DiffusionModel``; ``likelihood_task`` holds the settings in force."""

    estimates_likelihood: ClassVar[bool] = True
    likelihood_task: LikelihoodTask
    codec: Codec
    network: Any

    def use_likelihood(self, settings: Mapping[str, Any]) -> None:
        """Score with other settings from now on (the infer task sets those of each data set)."""
        self.likelihood_task = LikelihoodTask.build(settings)

    def open_text(self, prompt: Any) -> str:
        """Return a parsed prompt as text; the last turn of a conversation is left open.

        Raises ``DataError`` for what is no Unicode text.
        """
        text: str = prompt
        if not isinstance(prompt, str):
            text = self.codec.tokenizer.apply_chat_template(
                messages(prompt), tokenize=False, continue_final_message=True
            )
        check_text(text)
        return text

    def open_ids(self, prompt: Any) -> list[int]:
        """Return the ids of :meth:`open_text`."""
        return self.codec.ids_of(self.open_text(prompt), templated=not isinstance(prompt, str))

    def log_likelihoods(self, pairs: Sequence[Pair], groups: Sequence[str] | None = None) -> list[ElboResult]:
        """Return the estimate for each (context, continuation); pairs of one group share their random numbers.

        Raises ``DataError`` when a pair is longer than the context.
        """
        from dare_eval.decoding.likelihood import elbo

        self.check_length(max((len(context) + len(rest) for context, rest in pairs), default=0))
        return elbo(self.network, pairs, self.likelihood_task.options, groups=groups)

    def pair_limit(self, most: int | None = None) -> int:
        """Return the most tokens of a prompt with its option; ``most`` is a limit below the model's own.

        A token that closes every option takes one place. Raises ``UsageError`` for an estimator that does not fit.
        """
        from dare_eval.decoding.likelihood.elbo import closing_tokens, longest_pair

        options, config = self.likelihood_task.options, self.codec.config
        limit = min(most or self.codec.limit, self.codec.limit)
        return min(limit - closing_tokens(options, config), longest_pair(options, config))

    def check_length(self, tokens: int) -> None:
        """Raise ``DataError`` when a prompt with its option has more ``tokens`` than the context has room for."""
        limit = self.pair_limit()
        if tokens > limit:
            raise DataError(
                "prompt and option are longer than the context",
                seen=f"{tokens} tokens",
                allowed=f"{limit} tokens, in a context of {self.codec.limit}",
                remedy="use fewer examples",
            )

    def check_pair(self, pair: Pair, name: str) -> None:
        """Raise ``DataError`` when nothing of ``pair`` is scored: its likelihood would be 1, better than any other.

        Nothing predicts the first token of a sequence for a shifted network, so that one alone does not count.
        """
        context, rest = pair
        if not rest or len(context) + len(rest) <= int(self.codec.config.shift):
            raise DataError(
                f"{name} has nothing to score",
                seen=f"{len(rest)} tokens after {len(context)} given ones",
                allowed="at least one token that the model predicts",
                remedy="give it a text, or leave the item out",
            )

    def get_ppl(self, inputs: Sequence[Any], mask_length: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Return the mean negative log-likelihood per token [B] of each text; lower is better.

        The first ``mask_length[i]`` tokens of a text are its context; without it the first token alone is.
        """
        given = mask_length if mask_length is not None else [1] * len(inputs)
        pairs = [(ids[:start], ids[start:]) for ids, start in zip(map(self.open_ids, inputs), given, strict=True)]
        found = self._named_likelihoods(pairs)
        return np.array([-one.loglik / one.n_tokens for one in found], dtype=np.float64)

    def get_loglikelihood(self, inputs: Sequence[Any], conts: Sequence[str]) -> NDArray[np.float64]:
        """Return the log-likelihood [B] of each continuation at the end of its text; higher is better."""
        pairs = [self.pair_before(text, cont) for text, cont in zip(inputs, conts, strict=True)]
        return np.array([one.loglik for one in self._named_likelihoods(pairs)], dtype=np.float64)

    def _named_likelihoods(self, pairs: Sequence[Pair]) -> list[ElboResult]:
        """Return the estimates; raises ``DataError`` and ``IncompleteError`` that name the text without a number."""
        names = [f"text {number}" for number in range(len(pairs))]
        for pair, name in zip(pairs, names, strict=True):
            self.check_pair(pair, name)
        found = self.log_likelihoods(pairs)
        for one, name in zip(found, names, strict=True):
            check_finite(one, name)
        return found

    def pair_before(self, prompt: Any, cont: str) -> Pair:
        """Return ``prompt`` split before the last place where ``cont`` stands; spaces there belong to the latter."""
        text = self.open_text(prompt)
        if not cont.strip():
            raise DataError("the continuation is empty", seen=f"{cont!r} in {text[-80:]!r}", allowed="a text to score")
        place = text.rfind(cont)
        if place < 0:
            raise DataError("the continuation does not stand in the prompt", seen=f"{cont!r} in {text[-80:]!r}")
        templated = not isinstance(prompt, str)
        context = self.codec.ids_of(text[:place].rstrip(" "), templated=templated)
        return split_after(context, self.codec.ids_of(text, templated=templated))
