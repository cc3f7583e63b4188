"""Hugging Face side: ``AutoConfig`` and ``AutoModel`` open every family without remote code, and PEFT finds its layers.

    >>> from dare_eval.networks.auto import register
    >>> register()
    >>> AutoModel.from_pretrained("GSAI-ML/LLaDA-8B-Instruct")     # doctest: +SKIP

The wrapper holds the very modules of a ``DiffusionNetwork``, under the checkpoint's own names; it adds no weights and
no computation. There is no ``generate``: denoising lives in ``dare_eval.decoding``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import MaskedLMOutput

from dare_eval.errors import UsageError
from dare_eval.networks.attention.masks import AttentionMask
from dare_eval.networks.config import make_config
from dare_eval.networks.network import DiffusionNetwork
from dare_eval.spec import FAMILIES


class DiffusionConfig(PretrainedConfig):
    """A config.json of any family, kept as it is; one subclass per ``model_type``."""

    def __init__(self, **values: Any) -> None:
        if values.get("rope_scaling", ...) is None:
            del values["rope_scaling"]  # every published config says null; transformers 5 warns about the key itself
        super().__init__(**values)


class DiffusionModel(PreTrainedModel):
    """A ``DiffusionNetwork`` that Hugging Face tools can open, save and adapt; ``network`` is the network itself."""

    config_class = DiffusionConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # The kernel is the network's own choice (``network.attn_backend``); these only let any attn_implementation through.
    _supports_sdpa = _supports_flex_attn = _supports_flash_attn = True
    _no_split_modules = ("Block",)
    network: DiffusionNetwork

    def __init__(self, config: DiffusionConfig) -> None:
        super().__init__(config)
        network = DiffusionNetwork(make_config(config.to_dict()))
        for name, child in network.named_children():
            self.add_module(name, child)
        # One table of children for both, so that a layer replaced here (an adapter) is replaced there.
        network._modules = self._modules
        self.__dict__["network"] = network
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """Return the embedding table."""
        return self.network.at(self.network.config.names.embed)

    def get_output_embeddings(self) -> nn.Module | None:
        """Return the head, None when it is the embedding table."""
        config = self.network.config
        return None if config.tied_head else self.network.at(config.names.head)

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs: dict[str, Any] | None = None) -> None:
        """Recompute each layer in the backward pass."""
        self.network.gradient_checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        """Keep activations."""
        self.network.gradient_checkpointing = False

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        return_dict: bool | None = None,
        **others: Any,
    ) -> MaskedLMOutput | tuple[Tensor]:
        """Return raw logits (no shift) under the network's own attention and a padding mask [B, T] or mask [B,1,T,T].

        Raises ``UsageError`` for inputs the network does not take (``inputs_embeds``, ``labels``, ...).
        """
        given = [name for name, value in others.items() if value is not None and value is not False]
        if input_ids is None or set(given) - {"use_cache"}:
            raise UsageError(
                "the network takes token ids and a mask only",
                seen=", ".join(given) or "no input_ids",
                allowed="input_ids, attention_mask, position_ids",
                remedy="compute the loss outside (dare_train.objectives)",
            )
        mask = None if attention_mask is None else self._mask(attention_mask)
        logits = self.network(input_ids, positions_BT=position_ids, mask=mask)
        return (logits,) if return_dict is False else MaskedLMOutput(logits=logits)

    def _mask(self, attention_mask: Tensor) -> Tensor | AttentionMask:
        if attention_mask.ndim != 2:
            return attention_mask
        block_length, keep_BS = self.network.config.block_length, attention_mask.bool()
        if block_length is None:
            return AttentionMask.padding(keep_BS)
        start_B = keep_BS.int().argmax(dim=1)
        return AttentionMask.block_causal(
            keep_BS.shape[1], block_length, keep_BS=keep_BS, start_B=start_B, device=keep_BS.device
        )

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draw missing matrices as ``build_network`` does, from torch's global generator as Hugging Face expects."""
        if isinstance(module, nn.Linear | nn.Embedding):
            module.weight.normal_(0.0, self.network.config.init_std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.zero_()


@cache
def register() -> None:
    """Register every family with the Auto classes; calling it again changes nothing."""
    for family in FAMILIES.loadable().values():
        for model_type in family.model_types:
            stem = "".join(part.capitalize() for part in model_type.split("_"))
            # transformers writes an __init__ into each config class that has none of its own.
            facts = {"model_type": model_type, "__module__": __name__, "__init__": DiffusionConfig.__init__}
            config = type(f"{stem}Config", (DiffusionConfig,), facts)
            model = type(f"{stem}Model", (DiffusionModel,), {"config_class": config, "__module__": __name__})
            AutoConfig.register(model_type, config, exist_ok=True)
            for auto in (AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM):
                auto.register(config, model, exist_ok=True)
