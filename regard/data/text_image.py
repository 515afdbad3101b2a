"""Sources with a text and an image: settings, field and readers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from regard.core.config import Config
from regard.core.errors import DataError
from regard.core.specs import TextImageSpec
from regard.data.decoding import keep_readable
from regard.data.example import Example
from regard.data.image.builtin import NUMBERED_IMAGES
from regard.data.image.field import ImageConfig, ImageField
from regard.data.image.files import IMAGE_FILES
from regard.data.media import resolve
from regard.data.text.columns import SOURCE, TARGET
from regard.data.text.field import TextField
from regard.data.text.lines import read_lines
from regard.data.text.readers import OnError, read_examples
from regard.data.text.tokenizers import TokenizerConfig


@dataclass(frozen=True, kw_only=True)
class TextImageConfig(Config):
    """Settings of sources with a text and an image."""

    kind: Literal["joined"] = "joined"
    """Text and image."""
    text: TokenizerConfig = field(default_factory=TokenizerConfig)
    """Tokenizer of the text."""
    image: ImageConfig = field(default_factory=ImageConfig)
    """Settings of the image."""


TEXT_IMAGE_COLUMNS = (SOURCE, SOURCE, TARGET)
"""Columns of a file: text, image and target."""


@dataclass(frozen=True, slots=True)
class TextImageItem:
    """Token ids of a text with an image; the length is that of the text."""

    text: list[int]
    image: Any

    def __len__(self) -> int:
        return len(self.text)


class TextImageField:
    """Field of a text and an image; raw items are pairs `(text, image reference)`."""

    modality = "text+image"

    def __init__(self, text: TextField, image: ImageField) -> None:
        self.text = text
        self.image = image

    @classmethod
    def fit(cls, config: TextImageConfig, raws: Sequence[Any]) -> "TextImageField":
        """Return a field with the vocabulary of the texts and the statistics of the images."""
        pairs = [split_text_image(raw) for raw in raws]
        text = TextField.fit(config.text, [text for text, _ in pairs])
        return cls(text, ImageField.fit(config.image, [image for _, image in pairs]))

    @classmethod
    def load(cls, folder: Path) -> "TextImageField":
        """Load a field that `save` wrote."""
        return cls(TextField.load(folder), ImageField.load(folder))

    @property
    def spec(self) -> TextImageSpec:
        """Input specification of encoders: the sizes of text and image."""
        return TextImageSpec(self.text.spec, self.image.spec)

    def read_all(self, raws: Sequence[Any]) -> list[TextImageItem]:
        """Encode pairs of a text and an image reference, or lines with both, as items."""
        pairs = [split_text_image(raw) for raw in raws]
        texts = self.text.read_all([text for text, _ in pairs])
        images = self.image.read_all([image for _, image in pairs])
        return [TextImageItem(*both) for both in zip(texts, images, strict=True)]

    def shorten(self, item: TextImageItem, max_length: int) -> TextImageItem:
        """Truncate the text to `max_length` tokens."""
        return TextImageItem(self.text.shorten(item.text, max_length), item.image)

    def stack(self, items: Sequence[TextImageItem]) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Return token ids (B, S) with images (B, C, Y, X), and the mask (B, S) of the text."""
        ids, mask = self.text.stack([item.text for item in items])
        images, _ = self.image.stack([item.image for item in items])
        return (ids, images), mask

    def finish(self, values: tuple[Tensor, Tensor], *, is_training: bool) -> tuple[Tensor, Tensor]:
        """Return token ids unchanged, and standardised images."""
        ids, images = values
        return ids, self.image.finish(images, is_training=is_training)

    def save(self, folder: Path, side: str) -> None:
        """Write the fields of text and image into a run folder."""
        self.text.save(folder, side)
        self.image.save(folder, side)


def split_text_image(raw: Any) -> tuple[str, str]:
    """Return the text and the image reference of a source; in a line, a tab separates them."""
    parts = raw.split("\t") if isinstance(raw, str) else raw
    if not (isinstance(parts, list | tuple) and len(parts) == 2):
        raise DataError(
            "A source of kind 'joined' must be a text and an image, separated by a tab, but is "
            f"'{_shown(raw)}'. In a file, three columns are text, image and target."
        )
    text, image = (str(part).strip() for part in parts)
    if not (text and image):
        raise DataError(
            "A source of kind 'joined' must have a text and an image, but "
            f"{'the image' if text else 'the text'} of '{_shown(raw)}' is empty."
        )
    return text, image


def is_name(source: object) -> bool:
    """Return whether a source is a text with the name of an image."""
    return isinstance(source, tuple) and len(source) == 2 and IMAGE_FILES.is_name(source[1])


def _shown(raw: Any) -> str:
    return ("\\t".join(map(str, raw)) if isinstance(raw, tuple) else str(raw))[:80]


def read_with_images(
    path: str,
    second: str | None = None,
    *,
    read: Callable[..., list[Example]],
    on_error: OnError = "stop",
) -> list[Example]:
    """Read examples with a text and an image; image paths are relative to the file's folder.

    Args:
        path: The file.
        second: Second argument of `read`.
        read: Reader of the file.
        on_error: As for `read_examples`.
    """
    return [
        replace(one, source=(*one.source[:-1], resolve(one.source[-1], path, NUMBERED_IMAGES)))
        if isinstance(one.source, tuple)
        else one
        for one in read(path, second, on_error=on_error)
    ]


def read_pairs(
    path: str,
    second: str | None = None,
    *,
    columns: Sequence[str] = (),
    on_error: OnError = "stop",
) -> list[Example]:
    """Read a file of texts, images and targets."""
    read = partial(read_examples, columns=columns or TEXT_IMAGE_COLUMNS)
    return read_with_images(path, second, read=read, on_error=on_error)


def read_lines_with_images(path: str) -> Iterator[str]:
    """Read lines of a text and an image; image paths are relative to the file's folder."""
    for line in read_lines(path):
        text, *image = line.split("\t")
        # `split_text_image` reports lines that are not pairs.
        if image and image[0].strip():
            image[0] = resolve(image[0].strip(), path, NUMBERED_IMAGES)
        yield "\t".join([text, *image])


def drop_unreadable(examples: Sequence[Example], config: TextImageConfig) -> list[Example]:
    """Drop the examples whose image cannot be read."""
    return keep_readable(
        examples,
        config.image.decoder,
        reference=lambda example: split_text_image(example.source)[1],
    )
