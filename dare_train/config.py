"""Typed, frozen settings of a training run: what can be set, what it means, in which unit, in which range.

Every field carries a description and a unit, unknown keys are refused with the nearest name, and the resolved
record is what the manifest stores. Reading YAML and ``--set`` overrides is ``dare_train.settings``; which value a
named preset of an objective stands for is ``dare_train.presets``. No torch here.

    dare-train sft --config configs/train/sft_tiny_sudoku.yaml --show-config
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Decay = Annotated[float, Field(ge=0, lt=1)]


def setting(default: Any, description: str, *, unit: str = "", **limits: Any) -> Any:
    """Return a pydantic field with its meaning and unit ('' for names, switches and texts)."""
    return Field(default=default, description=description, json_schema_extra={"unit": unit}, **limits)


class Section(BaseModel):
    """Base of every group of settings: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, validate_default=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_another_value(cls, value: Any, info: ValidationInfo) -> Any:
        kind = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) and bool not in (kind, *get_args(kind)) and kind is not Any:
            raise ValueError(f"Input should be a value, got the switch {str(value).lower()}")
        return value


class LoraSettings(Section):
    """Low-rank adapters beside frozen weights."""

    rank: Positive = setting(32, "rank of the adapter matrices", unit="dimensions")
    alpha: float = setting(16.0, "scale of the adapter; its change is multiplied by alpha / rank", unit="factor", gt=0)
    dropout: float = setting(0.0, "share of adapter inputs dropped in training", unit="probability", ge=0, lt=1)
    targets: Literal["all-linear"] | tuple[str, ...] = setting("all-linear", "leaf names of the adapted projections")


class ModelSettings(Section):
    """Where the network comes from: a checkpoint to continue, or an architecture to start from noise."""

    base: str | None = setting(None, "checkpoint to continue: shipped name, local folder or hub id")
    architecture: dict[str, Any] | None = setting(
        None, "content of a config.json (original keys of the family) of a network that starts from noise"
    )
    tokenizer: str | None = setting(None, "'puzzles' (built in), a folder or a hub id; default: the one of the base")
    dtype: Literal["float32", "bfloat16", "float64"] = setting("float32", "type of the parameters")
    lora: LoraSettings | None = setting(None, "train adapters instead of the weights")
    quantize: Literal["4bit"] | None = setting(None, "load the frozen weights in 4 bits (extra 'quant'); needs lora")

    @model_validator(mode="after")
    def _one_origin(self) -> ModelSettings:
        if (self.base is None) == (self.architecture is None):
            raise ValueError("set exactly one of model.base and model.architecture")
        if self.architecture is not None and self.tokenizer is None:
            raise ValueError("model.architecture needs model.tokenizer")
        if self.quantize and not self.lora:
            raise ValueError("model.quantize needs model.lora: 4-bit weights are not trained")
        if self.lora and self.base is None:
            raise ValueError("model.lora needs model.base: an adapter changes a checkpoint")
        return self


class DataSettings(Section):
    """Which rows are trained on and how a row becomes tokens."""

    train: str = setting(..., "training rows: SOURCE[SPLIT:COUNT], joined by '+'; e.g. puzzles/sudoku[train:20000]")
    prompt_field: str = setting("prompt", "column with the user turn")
    response_field: str = setting("response", "column with the answer")
    messages_field: str | None = setting(None, "column with a list of {role, content}; replaces prompt and response")
    max_length: Positive = setting(4096, "longest accepted row, prompt and response together", unit="tokens")
    end_of_turn: bool = setting(True, "train on what the chat template writes after the answer")
    eos_padding: Literal["none", "batch", "max_length"] = setting(
        "none", "fill answers with EOS, which is trained, up to the longest row of the batch or to max_length"
    )
    on_bad_row: Literal["refuse", "skip"] = setting("refuse", "a row that cannot be used stops the run, or is counted")
    shuffle: bool = setting(True, "draw a new order in each epoch from the seed")
    streaming: bool = setting(False, "read rows as they are needed instead of all at the start")
    shuffle_buffer: Count = setting(1024, "rows held to shuffle a stream", unit="rows")
    prepared: str | None = setting(None, "file of tokenised rows (dare-train data prepare) to read instead of train")

    @model_validator(mode="after")
    def _read_one_way(self) -> DataSettings:
        if self.streaming and self.prepared:
            raise ValueError("prepared rows are read whole: set data.prepared or data.streaming, not both")
        return self


class PairSettings(DataSettings):
    """Which pairs of answers are trained on; the prompt is the same for both."""

    chosen_field: str = setting("chosen", "column with the preferred answer: text, or messages that end with it")
    rejected_field: str = setting("rejected", "column with the other answer: text, or messages that end with it")

    @model_validator(mode="after")
    def _no_single_rows(self) -> PairSettings:
        if self.prepared or self.messages_field or self.eos_padding != "none":
            raise ValueError("data.prepared, data.messages_field and data.eos_padding do not apply to pairs of answers")
        return self


class TextSettings(Section):
    """Which texts are pretrained on; they are read as a stream."""

    train: str = setting(..., "texts: SOURCE[SPLIT:COUNT], joined by '+'")
    text_field: str = setting("text", "column with the text")
    sequence_length: Positive = setting(4096, "length that joined texts are cut to", unit="tokens")
    random_length_share: float = setting(0.01, "sequences that get a random shorter length", unit="share", ge=0, le=1)
    shuffle_buffer: Count = setting(1024, "sequences held to shuffle the stream", unit="sequences")
    on_bad_row: Literal["refuse", "skip"] = setting("refuse", "a row without text stops the run, or is counted")


class PreferenceSettings(Section):
    """The pair loss and how the likelihood bound of an answer is estimated."""

    beta: float = setting(0.2, "how hard a preference pulls away from the reference", unit="1/nat", gt=0)
    times: Positive | None = setting(None, "masking rates per answer (n_t), stratified", unit="rates")
    masks_per_time: Positive | None = setting(None, "masks per rate (n_yt)", unit="masks")
    shared_draws: bool | None = setting(None, "policy and reference see the same masks")
    elbo_norm: Literal["none", "length"] = setting("none", "divide the bound by the answer length, or do not")
    rows_per_forward: Positive = setting(16, "noised rows in memory at once", unit="rows")
    heldout_times: Positive = setting(8, "masking rates per answer when held-out pairs are judged", unit="rates")


class ObjectiveSettings(Section):
    """The corruption and the loss; ``preset`` fills what is not set (see ``dare_train.presets``)."""

    preset: str = setting("auto", "named set of the values below; 'auto' follows the family of the network")
    time_low: float | None = setting(None, "smallest drawn time", unit="share of the noise process", ge=0, le=1)
    time_high: float | None = setting(None, "largest drawn time", unit="share of the noise process", ge=0, le=1)
    time_per: Literal["sequence", "block"] | None = setting(None, "one time per sequence or per block")
    schedule: Literal["linear", "cosine"] | None = setting(
        None, "masking rate at time t: t, or sin(pi t / 2), which spends more time on rows that are mostly masked"
    )
    eos_as_one: bool | None = setting(None, "all trailing EOS of a row are masked or kept together")
    weight: Literal["inverse_rate", "uniform", "cart"] | None = setting(None, "weight of the loss of a masked token")
    cart_p: float | None = setting(None, "decay of the CART weights", unit="probability", gt=0, lt=1)
    normaliser: Literal["sequence", "batch_tokens", "masked_tokens", "rows"] | None = setting(
        None, "what the summed loss is divided by: answer length per row then rows; answer, masked tokens; rows"
    )
    block_length: Positive | None = setting(None, "tokens per block; a block-diffusion loss when set", unit="tokens")


class OptimSettings(Section):
    """AdamW, its schedule and gradient clipping."""

    lr: float = setting(1e-4, "peak learning rate", unit="1/step", gt=0)
    betas: tuple[Decay, Decay] = setting((0.9, 0.95), "decay of the two moments", unit="1/step")
    eps: float = setting(1e-8, "added to the root of the second moment", unit="gradient", gt=0)
    weight_decay: float = setting(0.01, "decoupled decay of matrices", unit="1/step", ge=0)
    clip_norm: float | None = setting(1.0, "largest gradient norm; null switches clipping off", unit="gradient", gt=0)
    schedule: Literal["constant", "linear", "cosine"] = setting("cosine", "shape of the learning rate after warm-up")
    warmup_steps: Count = setting(0, "linear rise from zero", unit="steps")
    ema_decay: float | None = setting(
        None,
        "decay of a moving average of the weights, which is then what is judged and exported",
        unit="kept per step",
        gt=0,
        lt=1,
    )
    min_lr_frac: float = setting(0.0, "learning rate at the last step", unit="share of lr", ge=0, le=1)


class TrainSettings(Section):
    """Length, batch and housekeeping of the loop."""

    max_steps: Positive = setting(..., "optimizer steps; training stops there by itself", unit="steps")
    batch_size: Positive = setting(64, "rows per optimizer step over all processes", unit="rows")
    micro_batch_size: Positive | None = setting(None, "rows per forward; null takes the whole share", unit="rows")
    eval_every: Count = setting(0, "distance of two held-out evaluations; 0: before and after training", unit="steps")
    log_every: Positive = setting(10, "distance of two lines in metrics.jsonl", unit="steps")
    save_every: Count = setting(0, "distance of two checkpoints; 0 keeps the last one only", unit="steps")
    keep_checkpoints: Positive = setting(2, "checkpoints kept for resuming", unit="checkpoints")
    precision: Literal["full", "bf16"] = setting("full", "bf16: products in bfloat16, weights and sums as model.dtype")
    packing: bool = setting(True, "lay rows of unequal length end to end instead of padding them")
    attn_backend: Literal["auto", "sdpa", "flex", "varlen", "flash_attention_2"] = setting("auto", "attention kernel")
    gradient_checkpointing: bool = setting(False, "recompute each layer in the backward pass: less memory, more time")
    strategy: Literal["auto", "ddp", "fsdp2"] = setting(
        "auto", "several processes: whole copies or shards (auto: fsdp2)"
    )
    sequence_parallel: Positive = setting(1, "processes that share the columns of each row (--sp)", unit="processes")
    shard_size: Positive | None = setting(
        None, "fsdp2: processes that hold one copy of the weights between them; null: all of them", unit="processes"
    )
    reshard_after_forward: bool = setting(
        True, "fsdp2: a layer's weights are freed until its backward pass (ZeRO 3) or kept (ZeRO 2)"
    )
    reduce_every_part: bool = setting(
        True, "fsdp2: gradients are shared after each micro-batch, or whole ones are kept until the last (ZeRO 1)"
    )
    cpu_offload: bool = setting(False, "fsdp2: weights and optimizer states rest in main memory")
    track: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = setting((), "training curves elsewhere, too")
    threads: Positive | None = setting(None, "threads of torch; null leaves its own choice", unit="threads")
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "where the network lives")


class MoeSettings(Section):
    """How the routers of a mixture of experts are trained."""

    aux_coef: float = setting(0.0, "weight of the load-balance loss (Switch, eq. 4); 0 leaves it out", unit="1", ge=0)
    freeze_router: bool = setting(False, "keep the routers as they are")


class EvaluationSettings(Section):
    """What ``--then-eval`` runs and compares with."""

    config: str | None = setting(None, "OpenCompass config of the follow-up evaluation")
    model_name: str | None = setting(None, "model path inside that config which the new checkpoint replaces")
    baseline: str | None = setting(None, "shipped name, checkpoint folder or run folder; default: the parent")


class RunConfig(Section):
    """Settings that every verb shares; each verb brings its own ``data``."""

    output_dir: str = setting(..., "folder of this run: metrics, checkpoints, model, manifest")
    seed: Count = setting(0, "seed of initialisation, row order and corruption")
    model: ModelSettings
    data: Section
    optim: OptimSettings = OptimSettings()
    train: TrainSettings
    moe: MoeSettings = MoeSettings()
    evaluation: EvaluationSettings = EvaluationSettings()


class PretrainConfig(RunConfig):
    """``dare-train pretrain``: masked or block diffusion over whole texts, no part of which is a prompt."""

    data: TextSettings
    objective: ObjectiveSettings = ObjectiveSettings()


class SftConfig(RunConfig):
    """``dare-train sft``: supervised fine-tuning by masked or block diffusion."""

    data: DataSettings
    objective: ObjectiveSettings = ObjectiveSettings()


class PreferenceConfig(RunConfig):
    """``dare-train preference``: pairs of answers, the better one made more likely (DPO, VRPO)."""

    algo: Literal["dpo", "vrpo"] = setting("vrpo", "name of the algorithm; sets what is not set under preference")
    data: PairSettings
    preference: PreferenceSettings = PreferenceSettings()


VERBS: dict[str, type[RunConfig]] = {"pretrain": PretrainConfig, "sft": SftConfig, "preference": PreferenceConfig}
"""Verbs of the command line and their settings."""
