"""Sources of a text and an image: settings, field, and files with both on a line."""

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
from regard.data.image.builtin import PICTURES
from regard.data.image.field import ImageConfig, ImageField
from regard.data.media import resolve
from regard.data.text.columns import SOURCE, TARGET
from regard.data.text.field import TextField
from regard.data.text.lines import read_lines
from regard.data.text.readers import read_examples
from regard.data.text.tokenizers import TokenizerConfig


@dataclass(frozen=True, kw_only=True)
class JoinedConfig(Config):
    """A text and an image, read side by side."""

    kind: Literal["joined"] = "joined"
    """Text and image together."""
    text: TokenizerConfig = field(default_factory=TokenizerConfig)
    """How the text is cut into tokens."""
    image: ImageConfig = field(default_factory=ImageConfig)
    """What becomes of the image."""


JOINED_COLUMNS = (SOURCE, SOURCE, TARGET)
"""What stands in the columns of a file where a source is both: text, image and target."""


@dataclass(frozen=True, slots=True)
class JoinedItem:
    """A text's token ids with an image; its length is the text's."""

    text: list[int]
    image: Any

    def __len__(self) -> int:
        return len(self.text)


class JoinedField:
    """A text and an image, read side by side: raw items are pairs `(text, image's reference)`."""

    modality = "text+image"

    def __init__(self, text: TextField, image: ImageField) -> None:
        self.text = text
        self.image = image

    @classmethod
    def fit(cls, config: JoinedConfig, raws: Sequence[Any]) -> "JoinedField":
        """Return a field with a vocabulary for the texts and the mean of the images."""
        pairs = [read_pair(raw) for raw in raws]
        text = TextField.fit(config.text, [text for text, _ in pairs])
        return cls(text, ImageField.fit(config.image, [image for _, image in pairs]))

    @classmethod
    def load(cls, folder: Path) -> "JoinedField":
        """Read what `save` wrote."""
        return cls(TextField.load(folder), ImageField.load(folder))

    @property
    def spec(self) -> TextImageSpec:
        """The sizes of text and image, which an encoder is built for."""
        return TextImageSpec(self.text.spec, self.image.spec)

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


def read_with_images(
    path: str, second: str | None = None, *, read: Callable[[str, str | None], list[Example]]
) -> list[Example]:
    """Read examples whose source is a text and an image: a path that starts at the file's folder.

    Args:
        path: The file.
        second: As for `read`.
        read: What reads the file.
    """
    return [
        replace(one, source=(*one.source[:-1], resolve(one.source[-1], path, PICTURES)))
        if isinstance(one.source, tuple)
        else one
        for one in read(path, second)
    ]


def read_pairs(
    path: str, second: str | None = None, *, columns: Sequence[str] = ()
) -> list[Example]:
    """Read a file of texts, images and targets."""
    read = partial(read_examples, columns=columns or JOINED_COLUMNS)
    return read_with_images(path, second, read=read)


def read_lines_with_images(path: str) -> Iterator[str]:
    """Read lines of a text and an image, a path that starts at the folder of the file."""
    for line in read_lines(path):
        text, *image = line.split("\t")
        # A line that is no pair is left for `read_pair` to report.
        if image and image[0].strip():
            image[0] = resolve(image[0].strip(), path, PICTURES)
        yield "\t".join([text, *image])


def drop_unreadable(examples: Sequence[Example], config: JoinedConfig) -> list[Example]:
    """Drop the examples whose image cannot be read."""
    return keep_readable(
        examples, config.image.decoder, reference=lambda example: read_pair(example.source)[1]
    )
