"""A recipe: everything that decides what a run does, in one settings object."""

from dataclasses import dataclass, field
from typing import Any, Literal

from regard.core.config import at_least, from_dict, within
from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.data.modality import SourceConfig, modality_of
from regard.data.text.columns import check_columns
from regard.data.text.corruption import CorruptionConfig
from regard.data.text.masking import MaskingConfig, TokenMaskingConfig
from regard.data.text.noise import WordNoiseConfig
from regard.data.text.packing import PackingKind
from regard.data.text.tokenizers import TokenizerConfig
from regard.metrics.table import METRICS
from regard.models.build import ModelConfig
from regard.models.classifier import ClassifierConfig
from regard.models.decoders.sutskever import SutskeverDecoderConfig
from regard.models.decoders.xu2015 import XuDecoderConfig
from regard.models.encoders import (
    BottleneckEncoderConfig,
    EncoderConfig,
    check_reads,
    max_tokens,
)
from regard.models.language_model import LanguageModelConfig, TransformerLanguageConfig
from regard.models.masked_lm import MaskedModelConfig
from regard.search.settings import SearchConfig
from regard.tasks.base_recipe import BaseDataConfig as BaseDataConfig
from regard.tasks.base_recipe import BaseRecipe as BaseRecipe
from regard.tasks.generation.ctc import check_ctc
from regard.tasks.generation.reward_config import RewardConfig, check_reward
from regard.tasks.image_to_image.recipe import ImageToImageRecipe as ImageToImageRecipe
from regard.tasks.metrics import LOSS, PERPLEXITY, check_metric
from regard.tasks.regions.recipe import GroundingRecipe as GroundingRecipe
from regard.tasks.regions.recipe import SegmentationRecipe as SegmentationRecipe


@dataclass(frozen=True, kw_only=True)
class DataConfig(BaseDataConfig):
    """How pairs become batches."""

    source: SourceConfig = field(default_factory=TokenizerConfig)
    """What the source is: text, with the settings of its tokeniser; an image; both; or sound."""
    target: TokenizerConfig = field(default_factory=TokenizerConfig)
    """The target's tokeniser; a joint vocabulary takes the source's settings."""
    is_joint: bool = False
    """Train one tokeniser on both sides and share its vocabulary."""
    columns: tuple[str, ...] = ()
    """What stands in each column of a file: 'source', 'target' or '-'; further sources are context,
    further targets are references. 'sources' are any number of columns. Empty = source, target."""

    def __post_init__(self) -> None:
        if self.columns:
            check_columns(self.columns)
        if self.is_joint and modality_of(self.source).name != "text":
            raise ConfigError(
                "`is_joint` needs a source that is text, but `source.kind` is "
                f"'{self.source.kind}'. Set `is_joint` to false."
            )


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """What decides which weights are best."""

    metric: str = "bleu"
    """A metric's name, measured on greedy answers, or 'loss' or 'perplexity', which need none."""
    max_examples: int = 500
    """Validation pairs that are answered; the loss is always taken over all."""

    def __post_init__(self) -> None:
        at_least("max_examples", self.max_examples, 1)
        pick({LOSS: None, PERPLEXITY: None, **METRICS}, self.metric, "validation.metric")


@dataclass(frozen=True, kw_only=True)
class Recipe(BaseRecipe):
    """An encoder–decoder that writes a target for a source."""

    task: Literal["generation"] = "generation"
    """What the model is for."""
    data: DataConfig = field(default_factory=DataConfig)
    """How pairs become batches."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model."""
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    """How the best weights are told."""
    metrics: tuple[str, ...] = ("bleu", "chrf", "accuracy", "lecture_bleu")
    """What is measured on a test set; the first of answers is also measured by length."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """How targets are searched for."""
    reward: RewardConfig = field(default_factory=RewardConfig)
    """Whether it learns from how good its own answers are."""

    def __post_init__(self) -> None:
        check_kinds(self.data.source, self.model.encoder)
        check_ctc(self.model, self.search)
        check_reward(self.reward, self.model, task=self.task)
        if not self.metrics:
            raise ConfigError("`metrics` must name at least one metric, but is empty.")
        for name in self.metrics:
            check_metric(name, "metrics")
        model = self.model
        if isinstance(model.decoder, XuDecoderConfig) and self.train.teacher_forcing < 1:
            raise ConfigError(
                f"`model.decoder.kind` '{model.decoder.kind}' needs `train.teacher_forcing` 1, "
                f"since a target must run at once, but it is {self.train.teacher_forcing:g}."
            )
        if model.covers and self.train.teacher_forcing < 1:
            raise ConfigError(
                "`model.copying.coverage` above 0 needs `train.teacher_forcing` 1, since a target "
                f"must run at once, but it is {self.train.teacher_forcing:g}."
            )
        need_joint = {
            "`model.ties` 'all'": (model.ties == "all", "`model.ties` to 'output'"),
            "`model.decoder.source_weight` above 0": (model.foretells_source, "the weight to 0"),
            "`model.copying`": (model.copies, "`model.copying.kind` to 'none'"),
        }
        for name, (is_asked, instead) in need_joint.items():
            if is_asked and not self.data.is_joint:
                raise ConfigError(
                    f"{name} needs one joint vocabulary, but `data.is_joint` is false. "
                    f"Set `data.is_joint` to true, or {instead}."
                )


@dataclass(frozen=True, kw_only=True)
class ClassificationDataConfig(BaseDataConfig):
    """How labelled sources become batches."""

    source: SourceConfig = field(default_factory=TokenizerConfig)
    """What the source is: text, with the settings of its tokeniser; an image; both; or sound. A
    run that begins from another takes that one's."""
    mixup: float = 0.0
    """How much images are mixed with each other while training, labels as well: both parameters of
    the beta distribution that the shares are drawn from (Zhang et al. 2018); 0 = not at all."""

    def __post_init__(self) -> None:
        at_least("mixup", self.mixup, 0.0)
        if self.mixup and modality_of(self.source).name != "image":
            raise ConfigError(
                f"`mixup` is for images, but is {self.mixup:g} where `source.kind` is "
                f"'{self.source.kind}'. Set it to 0."
            )


@dataclass(frozen=True, kw_only=True)
class ClassificationValidationConfig:
    """What decides which weights of a classifier are best."""

    metric: Literal["accuracy", "loss"] = "accuracy"
    """The share of right labels, or the loss."""


@dataclass(frozen=True, kw_only=True)
class ClassificationRecipe(BaseRecipe):
    """An encoder that tells which label a text or an image has, or two texts together."""

    task: Literal["classification"] = "classification"
    """What the model is for."""
    data: ClassificationDataConfig = field(default_factory=ClassificationDataConfig)
    """How labelled sources become batches."""
    model: ClassifierConfig = field(default_factory=ClassifierConfig)
    """The model; a run that begins from another takes that one's encoder."""
    validation: ClassificationValidationConfig = field(
        default_factory=ClassificationValidationConfig
    )
    """How the best weights are told."""

    def __post_init__(self) -> None:
        check_kinds(self.data.source, self.model.encoder)


@dataclass(frozen=True, kw_only=True)
class DenoisingDataConfig(DataConfig):
    """How texts become pairs of what is left of them and what was taken out."""

    is_joint: bool = True
    """Always: both sides are the same text. The source's tokeniser is the one that is trained."""
    corruption: CorruptionConfig = field(default_factory=CorruptionConfig)
    """What is taken out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_joint:
            raise ConfigError("`is_joint` must be true where both sides are one text.")


@dataclass(frozen=True, kw_only=True)
class DenoisingRecipe(Recipe):
    """An encoder–decoder that writes what was taken out of a text."""

    task: Literal["denoising"] = "denoising"  # type: ignore[assignment]
    """What the model is for."""
    data: DenoisingDataConfig = field(default_factory=DenoisingDataConfig)
    """How texts become batches."""


@dataclass(frozen=True, kw_only=True)
class AutoencodingDataConfig(DataConfig):
    """How texts become pairs of themselves, the source spoilt or not."""

    is_joint: bool = True
    """Always: both sides are the same text. The source's tokeniser is the one that is trained."""
    noise: WordNoiseConfig = field(default_factory=WordNoiseConfig)
    """What spoils a source while training; nothing, where answers are asked for."""
    word_dropout: float = 0.0
    """Probability that the decoder reads an unknown token in place of a right one while training,
    so that it has to ask the code (Bowman et al. 2016)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("word_dropout", self.word_dropout, low=0.0, high=1.0)
        if not self.is_joint:
            raise ConfigError("`is_joint` must be true where both sides are one text.")


@dataclass(frozen=True, kw_only=True)
class AutoencodingRecipe(Recipe):
    """An encoder–decoder that writes a text anew from a narrow code."""

    task: Literal["autoencoding"] = "autoencoding"  # type: ignore[assignment]
    """What the model is for."""
    data: AutoencodingDataConfig = field(default_factory=AutoencodingDataConfig)
    """How texts become batches."""
    model: ModelConfig = field(
        default_factory=lambda: ModelConfig(
            encoder=BottleneckEncoderConfig(), decoder=SutskeverDecoderConfig()
        )
    )
    """The model."""
    metrics: tuple[str, ...] = ("accuracy", "bleu")
    """What is measured on a test set; the first of answers is also measured by length."""

    def __post_init__(self) -> None:
        super().__post_init__()
        encoder = self.model.encoder
        if not isinstance(encoder, BottleneckEncoderConfig):
            raise ConfigError(
                "`model.encoder.kind` must be 'bottleneck' where a text is written anew from its "
                f"code, but is '{encoder.kind}'. Put it inside: `model.encoder.encoder.kind`."
            )
        if encoder.of != "summary":
            raise ConfigError(
                "`model.encoder.of` must be 'summary', so that all texts have codes of one width, "
                f"but is '{encoder.of}'."
            )


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
class DistillationConfig:
    """What a student learns from its teacher; used only where there is a `teacher`."""

    temperature: float = 2.0
    """Divides the logits of both, so that the unlikely tokens count, too."""
    teacher: float = 5.0
    """Weight of the distance between the two distributions."""
    truth: float = 2.0
    """Weight of the masked-token loss."""
    states: float = 1.0
    """Weight of the angle between the last states of both."""

    def __post_init__(self) -> None:
        at_least("temperature", self.temperature, 0.1)
        for name in ("teacher", "truth", "states"):
            at_least(name, getattr(self, name), 0)


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


@dataclass(frozen=True, kw_only=True)
class LanguageDataConfig(BaseDataConfig):
    """How a text becomes batches of windows."""

    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(kind="byte"))
    """The tokeniser; 'byte' keeps the text to the letter."""
    window: int = 256
    """Tokens that are foretold at once, and that a test text is read by."""
    num_windows: int = 64
    """Windows in a batch."""

    def __post_init__(self) -> None:
        at_least("window", self.window, 1)
        at_least("num_windows", self.num_windows, 1)


@dataclass(frozen=True, kw_only=True)
class LanguageRecipe(BaseRecipe):
    """A language model, which foretells how a text goes on."""

    task: Literal["language_model"] = "language_model"
    """What the model is for."""
    data: LanguageDataConfig = field(default_factory=LanguageDataConfig)
    """How a text becomes batches of windows."""
    model: LanguageModelConfig = field(default_factory=TransformerLanguageConfig)
    """The model."""
    search: SearchConfig = field(
        default_factory=lambda: SearchConfig(beams=1, max_ratio=1.0, max_extra=200, temperature=0.8)
    )
    """How texts are continued."""

    def __post_init__(self) -> None:
        model = self.model
        if not isinstance(model, TransformerLanguageConfig) or model.positions != "learned":
            return
        if model.max_length < self.data.window:
            raise ConfigError(
                f"`model.max_length` must be at least `data.window` ({self.data.window}) with "
                f"learned positions, but is {model.max_length}."
            )


def check_kinds(source: SourceConfig, encoder: EncoderConfig) -> None:
    """Raise if an encoder is to read what it cannot: text, an image, both at once, or sound."""
    check_reads(encoder, modality_of(source).input_spec)


RECIPES: dict[str, type[BaseRecipe]] = {
    "generation": Recipe,
    "language_model": LanguageRecipe,
    "denoising": DenoisingRecipe,
    "autoencoding": AutoencodingRecipe,
    "masked_language_model": MaskedRecipe,
    "classification": ClassificationRecipe,
    "segmentation": SegmentationRecipe,
    "grounding": GroundingRecipe,
    "image_to_image": ImageToImageRecipe,
}
"""The recipes' classes by the name of their task."""


def to_recipe(values: dict[str, Any]) -> BaseRecipe:
    """Build a recipe from plain values; which kind, its `task` says."""
    return from_dict(pick(RECIPES, str(values.get("task", "generation")), "task"), values)
