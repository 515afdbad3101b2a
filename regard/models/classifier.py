"""A classifier: any encoder reads, a pooling makes one vector of what it read, a layer decides."""

from dataclasses import dataclass, field

from torch import Tensor

from regard.core.config import Config, DropoutRate
from regard.core.errors import ConfigError
from regard.core.module import Dropout, Linear, Module
from regard.core.specs import InputSpec
from regard.core.tables import pick
from regard.models.encoders import build_encoder, check_unpooled
from regard.models.encoders.image import ImageEncoderConfig
from regard.models.encoders.tables import AudioEncoderConfig, TokenEncoderConfig
from regard.models.encoders.text_image import TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoderConfig
from regard.models.heads.pooling import POOLINGS, PoolingKind
from regard.models.init import InitConfig, initialise
from regard.models.interfaces import Encoder


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig(Config):
    """An encoder with a decision on top."""

    encoder: (
        TokenEncoderConfig
        | ImageEncoderConfig
        | TextImageEncoderConfig
        | AudioEncoderConfig
        | VideoEncoderConfig
    ) = field(default_factory=TransformerEncoderConfig)
    """What reads the text, sees the image, both or the video, or listens."""
    pooling: PoolingKind = "mean"
    """What becomes of the states: the first, the encoder's own summary, the mean, the maximum, a
    mean weighted by attention, or, of two texts, a comparison of words that are alike."""
    has_hidden: bool = False
    """Whether a layer with tanh stands between pooling and decision, as in BERT."""
    dropout: DropoutRate = 0.1
    """Dropout on the pooled states."""
    init: InitConfig = field(default_factory=InitConfig)
    """How the weights start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling in ("first", "aligned"):
            check_unpooled(self.encoder, f"with `pooling` '{self.pooling}'")
            self._check_begins_with_a_token()

    def _check_begins_with_a_token(self) -> None:
        is_sound = isinstance(self.encoder, AudioEncoderConfig)
        # Beside a text, the cells of the image come first.
        is_seen = isinstance(
            self.encoder, ImageEncoderConfig | VideoEncoderConfig | TextImageEncoderConfig
        )
        if is_sound or is_seen:
            raise ConfigError(
                f"`pooling` must not be '{self.pooling}' with an encoder of "
                f"{'sound' if is_sound else 'images'}, whose first state is no token and which "
                "has no second text. Set it to 'summary' or 'mean'."
            )


class Classifier(Module):
    """Says how likely each label is for a text, an image or both, or a recording.

    Args:
        config: The settings.
        source: The sizes of the source's tensors.
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
        initialise(self, config.init)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return a logit for each label, (B, V), the labels being the vocabulary.

        Args:
            values: (B, S) token ids, (B, C, Y, X) images, both as a pair, or (B, F, M) frames.
            mask: (B, S), True = a real position; it may still lie on the host.
        """
        pooled = self.pooling(self.encoder(values, mask))
        if self.hidden is not None:
            pooled = self.hidden(pooled).tanh()
        return self.output(self.dropout(pooled))  # (B, V)
