"""The table of modalities: all that text, images, audio, video and text with images differ in.

A modality from outside the package needs no entry: settings with an attribute `modality` bring
their own row, wherever settings of a source are expected.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from regard.core.specs import AudioSpec, ImageSpec, TextImageSpec, TextSpec, VideoSpec
from regard.data import text_image
from regard.data.audio.field import AudioConfig, AudioField
from regard.data.audio.files import AUDIO_FILES
from regard.data.datasets.labelled import as_source, read_labelled, split_source
from regard.data.decoding import keep_readable
from regard.data.example import Example
from regard.data.image.field import ImageConfig, ImageField
from regard.data.image.files import IMAGE_FILES
from regard.data.media import Medium
from regard.data.standardize import StandardizedField
from regard.data.text.field import TOKENIZER, TextField
from regard.data.text.lines import read_lines
from regard.data.text.readers import read_examples
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text_image import JoinedConfig as JoinedConfig
from regard.data.text_image import JoinedField as JoinedField
from regard.data.text_image import read_pair as read_pair
from regard.data.video.field import VideoConfig, VideoField
from regard.data.video.files import VIDEO_FILES

SourceConfig = TokenizerConfig | ImageConfig | JoinedConfig | AudioConfig | VideoConfig


class SourceField(Protocol):
    """A source's field: raw items → items with a length → padded tensors → encoder inputs."""

    @property
    def modality(self) -> str:
        """The name of its modality."""

    @property
    def text(self) -> TextField | None:
        """The field of the text in the source, where there is any."""
        return None

    @property
    def spec(self) -> Any:
        """The sizes of its tensors, which an encoder is built for."""

    def read_all(self, raws: Sequence[Any], /) -> list[Any]:
        """Turn raw items into items whose length is the number of positions they take."""

    def shorten(self, item: Any, most: int, /) -> Any:
        """Cut an item to `most` positions."""
        return item

    def stack(self, items: Sequence[Any], /) -> tuple[Any, Tensor]:
        """Return items as tensors, padded, and the mask (B, S), True = a real position."""

    def finish(self, values: Any, /, *, is_training: bool) -> Any:
        """Return what an encoder reads, on the device the stacked values are on."""
        return values

    def save(self, folder: Path, side: str, /) -> None:
        """Write what `Modality.load` needs into a run folder."""


@dataclass(frozen=True, kw_only=True)
class Modality:
    """All that one kind of source differs in from the others."""

    name: str
    """Such as "image"."""
    config: type[Any]
    """The settings of its field."""
    input_spec: type[Any]
    """The sizes of its tensors; encoders are sorted by it."""
    fit: Callable[[Any, Sequence[Any]], SourceField]
    """Learns a field from settings and training sources: a vocabulary, or mean and deviation."""
    load: Callable[[Path], SourceField]
    """Loads the field from a run folder."""
    files: tuple[str, ...]
    """Names of the files in a run folder that the field writes."""
    read_pairs: Callable[..., list[Example]]
    """Reads a file of sources and targets: `(path, second, *, columns)`."""
    read_labelled: Callable[[str, str | None], list[Example]]
    """Reads a file, or a folder, of sources with labels."""
    read_sources: Callable[[str], Iterable[Any]]
    """Reads a file, a folder or a list of sources without targets."""
    parse: Callable[[Any], Any] = lambda source: source
    """Turns a source with a label, or a line, into what the field reads."""
    is_name: Callable[[object], bool] = lambda source: False
    """Whether a source is the name of an item of this modality; no file is opened."""
    drop_unreadable: Callable[[list[Example], Any], list[Example]] = lambda examples, config: (
        examples
    )
    """Drops the examples whose source cannot be read by these settings, and logs how many."""
    merges_references: bool = False
    """Whether held-out examples of one source become one example with several references."""
    medium: Medium | None = None
    """How its files are recognised, where a source is one file."""


def _in_files(field: type[StandardizedField[Any]], medium: Medium, spec: type[Any]) -> Modality:
    """Return the row of a modality whose sources are files of one medium."""
    return Modality(
        name=field.modality,
        config=field.settings,
        input_spec=spec,
        fit=field.fit,
        load=field.load,
        files=(field.file.format("source"),),
        read_pairs=medium.read_table,
        read_labelled=medium.read_labelled,
        read_sources=medium.list_references,
        is_name=medium.is_name,
        drop_unreadable=lambda examples, config: keep_readable(examples, config.decoder),
        merges_references=True,
        medium=medium,
    )


MODALITIES: dict[str, Modality] = {
    "audio": _in_files(AudioField, AUDIO_FILES, AudioSpec),
    "image": _in_files(ImageField, IMAGE_FILES, ImageSpec),
    "video": _in_files(VideoField, VIDEO_FILES, VideoSpec),
    "text+image": Modality(
        name="text+image",
        config=JoinedConfig,
        input_spec=TextImageSpec,
        fit=JoinedField.fit,
        load=JoinedField.load,
        files=(TOKENIZER.format("source"), ImageField.file.format("source")),
        read_pairs=text_image.read_pairs,
        read_labelled=partial(text_image.read_with_images, read=read_labelled),
        read_sources=text_image.read_lines_with_images,
        parse=read_pair,
        drop_unreadable=text_image.drop_unreadable,
    ),
    "text": Modality(
        name="text",
        config=TokenizerConfig,
        input_spec=TextSpec,
        fit=TextField.fit,
        load=TextField.load,
        files=(TOKENIZER.format("source"),),
        read_pairs=read_examples,
        read_labelled=read_labelled,
        read_sources=read_lines,
        parse=lambda source: as_source(split_source(source)),
    ),
}
"""By their names; text is last, because any name may be a text."""

_BY_CONFIG = {modality.config: modality for modality in MODALITIES.values()}


def modality_of(config: Any) -> Modality:
    """Return the modality of a source's settings; those from outside the package name their own."""
    own: Modality | None = getattr(config, "modality", None)
    return own or _BY_CONFIG[type(config)]


def detect_modality(examples: Sequence[Example]) -> Modality:
    """Return the modality that the names of the first sources, most of them, belong to.

    Not all of them: a file may begin with a line of headings.
    """
    first = [example.source for example in examples[:100]]
    for modality in MODALITIES.values():
        if 2 * sum(map(modality.is_name, first)) > len(first):
            return modality
    return MODALITIES["text"]


def read_any_pairs(
    path: str, second: str | None = None, *, columns: Sequence[str] = ()
) -> list[Example]:
    """Read a folder with a folder of files for each label, or a file of pairs, of any modality."""
    media = [modality.medium for modality in MODALITIES.values() if modality.medium]
    if second is None and Path(path).is_dir():
        found = (medium for medium in media if medium.contains_items(Path(path)))
        return next(found, IMAGE_FILES).read_label_folders(path)
    next((medium for medium in media if medium.is_name(path)), IMAGE_FILES).check_is_table(path)
    return read_examples(path, second, columns=columns)


def fit_source(
    config: SourceConfig, raws: Sequence[Any], *, has_start: bool = False
) -> SourceField:
    """Fit the field of a source to training data.

    Args:
        config: The settings.
        raws: The training sources.
        has_start: Whether a text begins with the start token.
    """
    return _begin(modality_of(config).fit(config, raws), has_start)


def load_source(config: SourceConfig, folder: Path, *, has_start: bool = False) -> SourceField:
    """Load the field of a source from a run folder."""
    return _begin(modality_of(config).load(folder), has_start)


def _begin(field: SourceField, has_start: bool) -> SourceField:
    if has_start and field.text is not None:
        field.text.add_start()
    return field
