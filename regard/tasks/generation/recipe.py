"""Recipe of tasks that generate a target for a source."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from torch import Tensor

from regard.core.config import (
    AtLeast,
    Config,
    NonNegative,
    NonNegativeFloat,
    Positive,
    UnitInterval,
)
from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.data.batching import Items, Sequences
from regard.data.modality import SourceConfig, modality_of
from regard.data.text.columns import check_columns
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.token_ids import lengths_of
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
    """Data settings of source–target pairs."""

    source: SourceConfig = field(default_factory=TokenizerConfig)
    """The source: text, with the settings of its tokeniser; an image; both; audio; or video."""
    target: TokenizerConfig = field(default_factory=TokenizerConfig)
    """Tokeniser of the target; a joint vocabulary uses the settings of the source."""
    is_joint: bool = False
    """Whether to train one tokeniser on both sides and share its vocabulary."""
    columns: tuple[str, ...] = ()
    """Roles of the columns of a file: 'source', 'target' or '-' (ignored); further sources are
    context, further targets are references. 'sources' is any number of columns. Or titles of
    columns, the target last. Empty = source, target, by titles if there are any."""
    links: str = ""
    """Pharaoh file with the word alignment of each training pair, such as '0-0 1-2', for
    `alignment.weight`; words are separated by whitespace. Empty = the alignments of the data, such
    as those of the phrasebook."""

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
    """Validation: the criterion for the best weights."""

    metric: str = "bleu"
    """A metric of greedy predictions, or 'loss' or 'perplexity', which need no predictions."""
    max_examples: Positive = 500
    """Maximum number of validation pairs to predict; the loss is always over all pairs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        pick({LOSS: None, PERPLEXITY: None, **METRICS}, self.metric, "validation.metric")


@dataclass(frozen=True, kw_only=True)
class RewardConfig(Config):
    """Self-critical training with a reward (Rennie et al. 2017)."""

    metric: Literal["none", "bleu", "cider"] = "none"
    """Reward of a sampled target; 'none' = maximum-likelihood training."""
    num_draws: Annotated[int, AtLeast(2)] = 5
    """Number of targets to sample per source."""
    share: UnitInterval = 1.0
    """Weight of the reward loss; 1 minus it is the weight of the likelihood loss with its terms."""


@dataclass(frozen=True, kw_only=True)
class AlignmentConfig(Config):
    """Guided alignment: attention trained towards given word alignments (Chen et al. 2016)."""

    weight: NonNegativeFloat = 0.0
    """Weight of the alignment loss; 0 = attention is learned from the targets alone."""
    layer: NonNegative = 0
    """Layer of the decoder whose attention is trained, from 1; 0 = the last but one, or the only
    one."""
    heads: tuple[int, ...] = (1,)
    """Heads of this layer that are trained, from 1; a recurrent decoder has one head."""


@dataclass(frozen=True, kw_only=True)
class Recipe(BaseRecipe):
    """An encoder–decoder that generates a target for a source."""

    task: Literal["generation"] = "generation"
    """The task."""
    data: DataConfig = field(default_factory=DataConfig)
    """Data and batching."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model."""
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    """Validation."""
    metrics: tuple[str, ...] = ("bleu", "chrf", "accuracy", "lecture_bleu")
    """Metrics of a test set; the first one of predictions is also measured by source length."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """Search for targets."""
    reward: RewardConfig = field(default_factory=RewardConfig)
    """Self-critical training."""
    alignment: AlignmentConfig = field(default_factory=AlignmentConfig)
    """Guided alignment."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_encoder_reads(self.data.source, self.model.encoder)
        check_ctc(self.model, self.search)
        if self.alignment.weight:
            check_alignment(self)
        check_reward(self.reward, self.model)
        if not self.metrics:
            raise ConfigError("`metrics` must name at least one metric, but is empty.")
        for name in self.metrics:
            check_metric(name, "metrics")
        model = self.model
        if isinstance(model.decoder, XuDecoderConfig) and self.train.teacher_forcing < 1:
            raise ConfigError(
                f"`model.decoder.kind` '{model.decoder.kind}' needs `train.teacher_forcing` 1, "
                "since it decodes a target in one pass, but it is "
                f"{self.train.teacher_forcing:g}."
            )
        if model.has_coverage and self.train.teacher_forcing < 1:
            raise ConfigError(
                "`model.copying.coverage` above 0 needs `train.teacher_forcing` 1, since a target "
                f"is decoded in one pass, but it is {self.train.teacher_forcing:g}."
            )
        need_joint = {
            "`model.ties` 'all'": (model.ties == "all", "`model.ties` to 'output'"),
            "`model.decoder.source_weight` above 0": (model.predicts_source, "the weight to 0"),
            "`model.copying`": (model.has_copying, "`model.copying.kind` to 'none'"),
        }
        for name, (is_enabled, instead) in need_joint.items():
            if is_enabled and not self.data.is_joint:
                raise ConfigError(
                    f"{name} needs one joint vocabulary, but `data.is_joint` is false. "
                    f"Set `data.is_joint` to true, or {instead}."
                )


def check_ctc(model: ModelConfig, search: SearchConfig) -> None:
    """Raise a `ConfigError` if a search uses CTC without a CTC head, or an untrained decoder."""
    if search.ctc_weight and model.ctc.kind == "none":
        raise ConfigError(
            "`search.ctc_weight` above 0 needs a model with a CTC head, but is "
            f"{search.ctc_weight:g} where `model.ctc.kind` is 'none'. Set it to 0."
        )
    if model.ctc_weight == 1 and search.ctc_weight < 1:
        raise ConfigError(
            "`search.ctc_weight` must be 1 where `model.ctc.weight` is 1, since the decoder is not "
            f"trained, but is {search.ctc_weight:g}."
        )


def check_reward(reward: RewardConfig, model: ModelConfig) -> None:
    """Raise a `ConfigError` if rewards cannot train the model, or leave a part of it untrained."""
    if reward.metric == "none":
        return
    if model.ctc_weight == 1:
        raise ConfigError(
            "`reward.metric` must be 'none' where `model.ctc.weight` is 1, since targets are "
            f"sampled from the decoder, which is not trained, but is '{reward.metric}'."
        )
    bottleneck = (
        model.encoder.bottleneck if isinstance(model.encoder, BottleneckEncoderConfig) else None
    )
    own_losses = {
        "`model.decoder.kind` 'xu_hard'": isinstance(model.decoder, HardXuDecoderConfig),
        "`model.ctc.kind` 'head'": model.ctc_weight > 0,
        "a variational bottleneck": isinstance(bottleneck, VariationalBottleneckConfig),
    }
    for name, has_own_loss in own_losses.items():
        if has_own_loss and reward.share == 1:
            raise ConfigError(
                f"`reward.share` must be below 1 with {name}, which has a loss of its own, "
                "but is 1. Set it to 0.5."
            )


def check_alignment(recipe: Recipe) -> None:
    """Raise a `ConfigError` if guided alignment cannot train the model."""
    config = recipe.alignment
    modality = modality_of(recipe.data.source).name
    if recipe.task != "generation" or modality != "text":
        raise ConfigError(
            "`alignment.weight` above 0 needs pairs of texts, but the task is "
            f"'{recipe.task}' and the source '{modality}'. Set it to 0."
        )
    if recipe.reward.metric != "none" and recipe.reward.share == 1:
        raise ConfigError(
            "`reward.share` must be below 1 with `alignment.weight` above 0, which is part of the "
            "likelihood loss, but is 1. Set it to 0.5."
        )
    if isinstance(recipe.model.decoder, HardXuDecoderConfig):
        raise ConfigError(
            "`alignment.weight` above 0 needs attention weights with gradients, but those of "
            "`model.decoder.kind` 'xu_hard' are sampled. Set it to 0, or use 'xu_soft'."
        )
    if recipe.train.checkpoint_activations:
        raise ConfigError(
            "`train.checkpoint_activations` must be false with `alignment.weight` above 0, whose "
            "attention weights are recorded in the forward pass only, but is true."
        )
    num_heads = getattr(recipe.model.decoder, "num_heads", 1)
    if not config.heads or not all(1 <= head <= num_heads for head in config.heads):
        raise ConfigError(
            f"`alignment.heads` must name heads from 1 to {num_heads}, but is {list(config.heads)}."
        )


def check_positions(model: ModelConfig, sources: Items, targets: Sequences) -> None:
    """Raise a `ConfigError` if a training text is longer than the learned positions of a side."""
    # The last token of a target is not an input of the decoder.
    longest = {
        "encoder": int(lengths_of(sources).max()),
        "decoder": int(lengths_of(targets).max()) - 1,
    }
    for side, length in longest.items():
        limit = max_tokens(getattr(model, side))
        if 0 < limit < length:
            raise ConfigError(
                f"`model.{side}.max_length` must be at least the length of the longest training "
                f"text ({length} tokens) with learned positions, but is {limit}. Raise it, or "
                "lower `data.batch.max_length`."
            )


def limit_targets(lengths: Tensor, model: ModelConfig) -> Tensor:
    """Clamp lengths (B,) to the number of learned positions of the decoder."""
    limit = max_tokens(model.decoder)
    return lengths.clamp(max=limit) if limit else lengths
