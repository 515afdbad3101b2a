"""The recipe of masked language models."""

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
    """How lines of text become batches of which some tokens are hidden."""

    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(kind="wordpiece"))
    """The tokeniser; a token '<mask>' is added if it has none."""
    packing: PackingKind = "windows"
    """What is read at once: each line, windows of `batch.max_length` tokens, or windows cut in two
    of which half are joined wrongly or in the wrong order."""
    masking: MaskingConfig = field(default_factory=TokenMaskingConfig)
    """What is hidden."""


@dataclass(frozen=True, kw_only=True)
class DistillationConfig(Config):
    """What a student learns from its teacher; used only where there is a `teacher`."""

    temperature: Annotated[float, AtLeast(0.1)] = 2.0
    """Divides the logits of both, so that the unlikely tokens count, too."""
    teacher: Annotated[float, AtLeast(0)] = 5.0
    """Weight of the distance between the two distributions."""
    truth: Annotated[float, AtLeast(0)] = 2.0
    """Weight of the masked-token loss."""
    states: Annotated[float, AtLeast(0)] = 1.0
    """Weight of the angle between the last states of both."""


@dataclass(frozen=True, kw_only=True)
class MaskedRecipe(BaseRecipe):
    """An encoder that learns to tell hidden tokens."""

    task: Literal["masked_language_model"] = "masked_language_model"
    """What the model is for."""
    data: MaskedDataConfig = field(default_factory=MaskedDataConfig)
    """How lines of text become batches."""
    model: MaskedModelConfig = field(default_factory=MaskedModelConfig)
    """The model."""
    teacher: str = ""
    """A run folder whose model teaches this one; empty = learn from the text alone."""
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    """What is learned from the teacher."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.model.next_sentence) != (self.data.packing in ("pairs", "swaps")):
            raise ConfigError(
                "`model.next_sentence` must be above 0 with `data.packing` 'pairs' or 'swaps', and "
                f"0 without, but is {self.model.next_sentence:g} with '{self.data.packing}'."
            )
        most, longest = max_tokens(self.model.encoder), self.data.batch.max_length
        if 0 < most < longest:
            raise ConfigError(
                "`model.encoder.max_length` must be at least `data.batch.max_length` "
                f"({longest}) with learned positions, but is {most}."
            )
