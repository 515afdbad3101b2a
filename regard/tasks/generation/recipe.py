"""The recipe of tasks that generate a target for a source."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from torch import Tensor

from regard.core.config import AtLeast, Config, Positive, UnitInterval
from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.data.batching import Items, Sequences
from regard.data.modality import SourceConfig, modality_of
from regard.data.text.columns import check_columns
from regard.data.text.tokenizers import TokenizerConfig
from regard.metrics.table import METRICS
from regard.models.bottlenecks import VariationalBottleneckConfig
from regard.models.build import ModelConfig
from regard.models.decoders.xu2015 import HardXuDecoderConfig, XuDecoderConfig
from regard.models.encoders import max_tokens
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.search.settings import SearchConfig
from regard.tasks.metrics import LOSS, PERPLEXITY, check_metric
from regard.tasks.recipe import BaseDataConfig, BaseRecipe, check_encoder_reads


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
        super().__post_init__()
        if self.columns:
            check_columns(self.columns)
        if self.is_joint and modality_of(self.source).name != "text":
            raise ConfigError(
                "`is_joint` needs a source that is text, but `source.kind` is "
                f"'{self.source.kind}'. Set `is_joint` to false."
            )


@dataclass(frozen=True, kw_only=True)
class ValidationConfig(Config):
    """What decides which weights are best."""

    metric: str = "bleu"
    """A metric's name, measured on greedy answers, or 'loss' or 'perplexity', which need none."""
    max_examples: Positive = 500
    """Validation pairs that are answered; the loss is always taken over all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        pick({LOSS: None, PERPLEXITY: None, **METRICS}, self.metric, "validation.metric")


@dataclass(frozen=True, kw_only=True)
class RewardConfig(Config):
    """Whether a model learns from how good its own answers are (Rennie et al. 2017)."""

    metric: Literal["none", "bleu", "cider"] = "none"
    """What tells how good an answer is; 'none' = the right answers are made likelier instead."""
    num_draws: Annotated[int, AtLeast(2)] = 5
    """Answers drawn for each source, of which those better than the others become likelier."""
    share: UnitInterval = 1.0
    """Share of the loss that is about rewards; the rest is the loss without them, all its terms."""


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
        super().__post_init__()
        check_encoder_reads(self.data.source, self.model.encoder)
        check_ctc(self.model, self.search)
        check_reward(self.reward, self.model)
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
        if model.has_coverage and self.train.teacher_forcing < 1:
            raise ConfigError(
                "`model.copying.coverage` above 0 needs `train.teacher_forcing` 1, since a target "
                f"must run at once, but it is {self.train.teacher_forcing:g}."
            )
        need_joint = {
            "`model.ties` 'all'": (model.ties == "all", "`model.ties` to 'output'"),
            "`model.decoder.source_weight` above 0": (model.predicts_source, "the weight to 0"),
            "`model.copying`": (model.has_copying, "`model.copying.kind` to 'none'"),
        }
        for name, (is_asked, instead) in need_joint.items():
            if is_asked and not self.data.is_joint:
                raise ConfigError(
                    f"{name} needs one joint vocabulary, but `data.is_joint` is false. "
                    f"Set `data.is_joint` to true, or {instead}."
                )


def check_ctc(model: ModelConfig, search: SearchConfig) -> None:
    """Raise if a search asks for what the states of a model do not say, or for nothing learned."""
    if search.ctc_weight and model.ctc.kind == "none":
        raise ConfigError(
            "`search.ctc_weight` above 0 needs states that say tokens by themselves, but is "
            f"{search.ctc_weight:g} where `model.ctc.kind` is 'none'. Set it to 0."
        )
    if model.ctc_weight == 1 and search.ctc_weight < 1:
        raise ConfigError(
            "`search.ctc_weight` must be 1 where `model.ctc.weight` is 1, since the decoder learns "
            f"nothing, but is {search.ctc_weight:g}."
        )


def check_reward(reward: RewardConfig, model: ModelConfig) -> None:
    """Raise if answers cannot be judged, or if a part of a model would learn nothing from it."""
    if reward.metric == "none":
        return
    if model.ctc_weight == 1:
        raise ConfigError(
            "`reward.metric` must be 'none' where `model.ctc.weight` is 1, since answers are drawn "
            f"from the decoder, which learns nothing, but is '{reward.metric}'."
        )
    narrow = (
        model.encoder.bottleneck if isinstance(model.encoder, BottleneckEncoderConfig) else None
    )
    own_losses = {
        "`model.decoder.kind` 'xu_hard'": isinstance(model.decoder, HardXuDecoderConfig),
        "`model.ctc.kind` 'head'": model.ctc_weight > 0,
        "a variational bottleneck": isinstance(narrow, VariationalBottleneckConfig),
    }
    for name, has_own in own_losses.items():
        if has_own and reward.share == 1:
            raise ConfigError(
                f"`reward.share` must be below 1 with {name}, which learns from a loss of its own, "
                "but is 1. Set it to 0.5."
            )


def check_positions(model: ModelConfig, sources: Items, targets: Sequences) -> None:
    """Raise a `ConfigError` if training would come upon a text that a side cannot read."""
    # A decoder reads all of a target but its last token.
    longest = {"encoder": max(map(len, sources)), "decoder": max(map(len, targets)) - 1}
    for side, length in longest.items():
        most = max_tokens(getattr(model, side))
        if 0 < most < length:
            raise ConfigError(
                f"`model.{side}.max_length` must be at least the longest text to learn from "
                f"({length} tokens) with learned positions, but is {most}. Raise it, or lower "
                "`data.batch.max_length`."
            )


def limit_targets(lengths: Tensor, model: ModelConfig) -> Tensor:
    """Return lengths (B,), none of them beyond what the decoder has positions for."""
    most = max_tokens(model.decoder)
    return lengths.clamp(max=most) if most else lengths
