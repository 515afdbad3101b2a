"""Classifier: an encoder, a pooling and an output layer."""

from dataclasses import dataclass, field

from torch import Tensor

from regard.core.config import Config, DropoutRate
from regard.core.dropout import Dropout
from regard.core.errors import ConfigError
from regard.core.module import Linear, Module
from regard.core.specs import InputSpec
from regard.core.tables import pick
from regard.models.encoders import build_encoder, check_unpooled
from regard.models.encoders.image import ImageEncoderConfig
from regard.models.encoders.tables import AudioEncoderConfig, TokenEncoderConfig
from regard.models.encoders.text_image import TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoderConfig
from regard.models.heads.pooling import POOLINGS, PoolingKind
from regard.models.init import InitConfig, initialize
from regard.models.interfaces import Encoder


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig(Config):
    """Hyperparameters of a classifier."""

    encoder: (
        TokenEncoderConfig
        | ImageEncoderConfig
        | TextImageEncoderConfig
        | AudioEncoderConfig
        | VideoEncoderConfig
    ) = field(default_factory=TransformerEncoderConfig)
    """Encoder of the text, image, text with image, video or audio."""
    pooling: PoolingKind = "mean"
    """Pooling of the states: the first state, the encoder's summary, the mean, the maximum,
    attention pooling, or, for two texts, a comparison of soft-aligned words."""
    has_hidden: bool = False
    """Whether there is a hidden layer with tanh between pooling and output layer, as in BERT."""
    dropout: DropoutRate = 0.1
    """Dropout on the pooled states."""
    init: InitConfig = field(default_factory=InitConfig)
    """Weight initialisation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling in ("first", "aligned"):
            check_unpooled(self.encoder, f"with `pooling` '{self.pooling}'")
            self._check_first_state_is_token()

    def _check_first_state_is_token(self) -> None:
        is_audio = isinstance(self.encoder, AudioEncoderConfig)
        # In a memory of text and image, the cells of the image come first.
        is_visual = isinstance(
            self.encoder, ImageEncoderConfig | VideoEncoderConfig | TextImageEncoderConfig
        )
        if is_audio or is_visual:
            raise ConfigError(
                f"`pooling` must not be '{self.pooling}' with an encoder of "
                f"{'audio' if is_audio else 'images'}, whose first state is no token and which "
                "has no second text. Set it to 'summary' or 'mean'."
            )


class Classifier(Module):
    """Classifier of texts, images, videos or audio.

    Args:
        config: The hyperparameters.
        source: Input specification of the source.
        num_labels: Number of labels.
        separator: The token that ends a text.
    """

    encoder: Encoder

    def __init__(
        self, config: ClassifierConfig, source: InputSpec, num_labels: int, *, separator: int = 3
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(config.encoder, source)
        dim = self.encoder.memory_dim
        self.pooling = pick(POOLINGS, config.pooling, "pooling")(dim, separator)
        self.hidden = Linear(dim, dim) if config.has_hidden else None
        self.dropout = Dropout(config.dropout)
        self.output = Linear(dim, num_labels)
        initialize(self, config.init)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return the logits of the labels, (B, V).

        Args:
            values: (B, S) token ids, (B, C, Y, X) images, both as a pair, or (B, F, M) frames.
            mask: (B, S), True = a real position; may be on the CPU.
        """
        pooled = self.pooling(self.encoder(values, mask))
        if self.hidden is not None:
            pooled = self.hidden(pooled).tanh()
        return self.output(self.dropout(pooled))  # (B, V)
