"""Recipe of masked language models."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from regard.core.config import AtLeast, Config
from regard.core.errors import ConfigError
from regard.data.text.masking import MaskingConfig, TokenMaskingConfig
from regard.data.text.packing import PackingKind
from regard.data.text.tokenizers import TokenizerConfig
from regard.models.encoders import max_tokens
from regard.models.masked_lm import MaskedModelConfig
from regard.tasks.recipe import BaseDataConfig, BaseRecipe


@dataclass(frozen=True, kw_only=True)
class MaskedDataConfig(BaseDataConfig):
    """Data settings of masked language models."""

    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(kind="wordpiece"))
    """The tokeniser; a token '<mask>' is added if it has none."""
    packing: PackingKind = "windows"
    """Sequences: each line, windows of `batch.max_length` tokens, or windows of two segments, half
    of them with a wrong second segment ('pairs') or swapped segments ('swaps')."""
    masking: MaskingConfig = field(default_factory=TokenMaskingConfig)
    """Choice of the masked tokens."""


@dataclass(frozen=True, kw_only=True)
class DistillationConfig(Config):
    """Distillation losses; used only with a `teacher`."""

    temperature: Annotated[float, AtLeast(0.1)] = 2.0
    """Temperature of the logits of student and teacher."""
    teacher: Annotated[float, AtLeast(0)] = 5.0
    """Weight of the KL divergence between the predicted distributions."""
    truth: Annotated[float, AtLeast(0)] = 2.0
    """Weight of the masked-token loss."""
    states: Annotated[float, AtLeast(0)] = 1.0
    """Weight of the cosine distance between the last hidden states."""


@dataclass(frozen=True, kw_only=True)
class MaskedRecipe(BaseRecipe):
    """An encoder that predicts masked tokens."""

    task: Literal["masked_language_model"] = "masked_language_model"
    """The task."""
    data: MaskedDataConfig = field(default_factory=MaskedDataConfig)
    """Data and batching."""
    model: MaskedModelConfig = field(default_factory=MaskedModelConfig)
    """The model."""
    teacher: str = ""
    """Run folder of the teacher for knowledge distillation; empty = no distillation."""
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    """Knowledge distillation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.model.next_sentence) != (self.data.packing in ("pairs", "swaps")):
            raise ConfigError(
                "`model.next_sentence` must be above 0 with `data.packing` 'pairs' or 'swaps', and "
                f"0 without, but is {self.model.next_sentence:g} with '{self.data.packing}'."
            )
        limit, max_length = max_tokens(self.model.encoder), self.data.batch.max_length
        if 0 < limit < max_length:
            raise ConfigError(
                "`model.encoder.max_length` must be at least `data.batch.max_length` "
                f"({max_length}) with learned positions, but is {limit}."
            )
