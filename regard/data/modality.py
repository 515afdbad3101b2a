"""What can go into a model: text, images, both, videos or sound; each is a field, all alike."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from torch import Tensor

from regard.core.errors import DataError
from regard.data.audio.field import AUDIO, AudioConfig, AudioField
from regard.data.image.field import IMAGE, ImageConfig, ImageField
from regard.data.text.columns import SOURCE, TARGET
from regard.data.text.field import TOKENIZER, TextField, texts_of
from regard.data.text.tokenizers import Tokenizer, TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.data.video.field import VIDEO, VideoConfig, VideoField


class SourceField(Protocol):
    """One kind of source: raw items → items with a length → padded tensors → what is read."""

    @property
    def size(self) -> Any:
        """What an encoder is built for: a number of tokens, or the shape of what else is read."""

    def read_all(self, raws: Sequence[Any], /) -> list[Any]:
        """Turn raw items into items whose length is the number of positions they take."""

    def shorten(self, item: Any, most: int, /) -> Any:
        """Cut an item to `most` positions."""

    def stack(self, items: Sequence[Any], /) -> tuple[Any, Tensor]:
        """Return items as tensors, padded, and the mask (B, S), True = a real position."""

    def finish(self, values: Any, /, *, is_training: bool) -> Any:
        """Return what an encoder reads, on the device the stacked values are on."""

    def save(self, folder: Path, side: str, /) -> None:
        """Write what `load_source` needs into a run folder."""


@dataclass(frozen=True, kw_only=True)
class JoinedConfig:
    """A text and an image, read side by side."""

    kind: Literal["joined"] = "joined"
    """Text and image together."""
    text: TokenizerConfig = field(default_factory=TokenizerConfig)
    """How the text is cut into tokens."""
    image: ImageConfig = field(default_factory=ImageConfig)
    """What becomes of the image."""


JOINED_COLUMNS = (SOURCE, SOURCE, TARGET)
"""What stands in the columns of a file where a source is both: text, image and target."""

SourceConfig = TokenizerConfig | ImageConfig | JoinedConfig | AudioConfig | VideoConfig


@dataclass(frozen=True, slots=True)
class JoinedItem:
    """A text's token ids with an image; its length is the text's."""

    text: list[int]
    image: Any

    def __len__(self) -> int:
        return len(self.text)


class JoinedField:
    """A text and an image, read side by side: raw items are pairs `(text, image's reference)`."""

    def __init__(self, text: TextField, image: ImageField) -> None:
        self.text = text
        self.image = image

    @property
    def size(self) -> tuple[int, tuple[int, int, int]]:
        """The number of tokens and the shape of the image."""
        return self.text.size, self.image.size

    def read_all(self, raws: Sequence[Any]) -> list[JoinedItem]:
        """Turn pairs of a text and an image's reference, or lines with both, into items."""
        pairs = [read_pair(raw) for raw in raws]
        texts = self.text.read_all([text for text, _ in pairs])
        images = self.image.read_all([image for _, image in pairs])
        return [JoinedItem(*both) for both in zip(texts, images, strict=True)]

    def shorten(self, item: JoinedItem, most: int) -> JoinedItem:
        """Cut the text to `most` tokens."""
        return JoinedItem(self.text.shorten(item.text, most), item.image)

    def stack(self, items: Sequence[JoinedItem]) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Return token ids (B, S) with images (B, C, Y, X), and the mask (B, S) of the text."""
        ids, mask = self.text.stack([item.text for item in items])
        images, _ = self.image.stack([item.image for item in items])
        return (ids, images), mask

    def finish(self, values: tuple[Tensor, Tensor], *, is_training: bool) -> tuple[Tensor, Tensor]:
        """Return token ids as they are and images in one form."""
        ids, images = values
        return ids, self.image.finish(images, is_training=is_training)

    def save(self, folder: Path, side: str) -> None:
        """Write both parts into a run folder."""
        self.text.save(folder, side)
        self.image.save(folder, side)


def learn_source(
    config: SourceConfig, raws: Sequence[Any], *, has_start: bool = False
) -> SourceField:
    """Learn from training sources what a field needs: a vocabulary, the mean of images or sounds.

    Args:
        config: The settings.
        raws: What is trained on.
        has_start: Whether a text begins with the start token.
    """
    if isinstance(config, ImageConfig):
        return ImageField.learn(config, raws)
    if isinstance(config, VideoConfig):
        return VideoField.learn(config, raws)
    if isinstance(config, AudioConfig):
        return AudioField.learn(config, raws)
    if isinstance(config, JoinedConfig):
        pairs = [read_pair(raw) for raw in raws]
        text = train_tokenizer(config.text, [text for text, _ in pairs])
        image = ImageField.learn(config.image, [image for _, image in pairs])
        return JoinedField(TextField(text, has_start=has_start), image)
    texts = [part for raw in raws for part in texts_of(raw)]
    return TextField(train_tokenizer(config, texts), has_start=has_start)


def load_source(config: SourceConfig, folder: Path, *, has_start: bool = False) -> SourceField:
    """Open what `SourceField.save` left in a run folder."""
    if isinstance(config, ImageConfig):
        return ImageField.load(folder / IMAGE.format("source"))
    if isinstance(config, VideoConfig):
        return VideoField.load(folder / VIDEO.format("source"))
    if isinstance(config, AudioConfig):
        return AudioField.load(folder / AUDIO.format("source"))
    text = TextField(Tokenizer.load(folder / TOKENIZER.format("source")), has_start=has_start)
    if isinstance(config, JoinedConfig):
        return JoinedField(text, ImageField.load(folder / IMAGE.format("source")))
    return text


def source_files(config: SourceConfig) -> tuple[str, ...]:
    """Return the files in a run folder that `SourceField.save` writes."""
    text, image = TOKENIZER.format("source"), IMAGE.format("source")
    if isinstance(config, ImageConfig):
        return (image,)
    if isinstance(config, VideoConfig):
        return (VIDEO.format("source"),)
    if isinstance(config, AudioConfig):
        return (AUDIO.format("source"),)
    return (text, image) if isinstance(config, JoinedConfig) else (text,)


def read_pair(raw: Any) -> tuple[str, str]:
    """Return the text and the image's reference of a source; in a line, a tab parts them."""
    parts = raw.split("\t") if isinstance(raw, str) else raw
    if not (isinstance(parts, list | tuple) and len(parts) == 2):
        raise DataError(
            "A source of kind 'joined' must be a text and an image, parted by a tab, but is "
            f"'{_shown(raw)}'. In a file, three columns are text, image and target."
        )
    text, image = (str(part).strip() for part in parts)
    if not (text and image):
        raise DataError(
            "A source of kind 'joined' must have a text and an image, but "
            f"{'the image' if text else 'the text'} of '{_shown(raw)}' is empty."
        )
    return text, image


def _shown(raw: Any) -> str:
    return ("\\t".join(map(str, raw)) if isinstance(raw, tuple) else str(raw))[:80]


def describe_source(field: SourceField) -> str:
    """Say in a few words what a model reads."""
    parts = (field.text, field.image) if isinstance(field, JoinedField) else (field,)
    return " with ".join(_describe(part.size) for part in parts)


def _describe(size: Any) -> str:
    if isinstance(size, int):
        return f"{size:,} source tokens"
    if len(size) == 1:
        return f"frames of {size[0]} mel bins"
    return f"{'videos' if len(size) == 4 else 'images'} of {' x '.join(map(str, size))}"
