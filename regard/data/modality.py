"""Table of modalities: text, images, audio, video, and text with images.

A modality from outside the package needs no entry: its settings have an attribute `modality`.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from regard.core.errors import DataError
from regard.core.specs import AudioSpec, ImageSpec, TextImageSpec, TextSpec, VideoSpec
from regard.data import text_image
from regard.data.audio.field import AudioConfig, AudioField
from regard.data.audio.files import AUDIO_FILES
from regard.data.datasets.labelled import (
    as_source,
    read_labelled,
    read_labelled_corpus,
    split_source,
)
from regard.data.decoding import keep_readable
from regard.data.example import Example
from regard.data.formats import check_is_text, describe_formats, read_head
from regard.data.image.field import ImageConfig, ImageField
from regard.data.image.files import IMAGE_FILES
from regard.data.media import Medium, resolve
from regard.data.standardize import StandardizedField
from regard.data.text.field import TOKENIZER, Text, TextField
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.readers import OnError, read_corpus
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text_image import TextImageConfig, TextImageField, split_text_image
from regard.data.video.field import VideoConfig, VideoField
from regard.data.video.files import VIDEO_FILES, is_folder_of_frames

NUM_DETECTED = 100
"""Number of first examples by which the modality of a file is detected."""

MEDIA = (AUDIO_FILES, IMAGE_FILES, VIDEO_FILES)
"""Media in the order in which names are compared with their formats."""

SourceConfig = TokenizerConfig | ImageConfig | TextImageConfig | AudioConfig | VideoConfig


class SourceField(Protocol):
    """Interface of source fields: raw items → items → padded tensors → encoder inputs."""

    @property
    def modality(self) -> str:
        """Name of the modality."""

    @property
    def text(self) -> TextField | None:
        """Field of the text in the source; None without text."""
        return None

    @property
    def spec(self) -> Any:
        """Input specification of encoders: the sizes of the tensors."""

    def read_all(self, raws: Sequence[Any], /) -> list[Any]:
        """Convert raw items to items whose length is the number of positions they take."""

    def shorten(self, item: Any, max_length: int, /) -> Any:
        """Truncate an item to `max_length` positions."""
        return item

    def stack(self, items: Sequence[Any], /) -> tuple[Any, Tensor]:
        """Return items as padded tensors, and the mask (B, S), True = a real position."""

    def finish(self, values: Any, /, *, is_training: bool) -> Any:
        """Return the inputs of an encoder, on the device of the stacked values."""
        return values

    def save(self, folder: Path, side: str, /) -> None:
        """Write the files that `Modality.load` reads into a run folder."""


@dataclass(frozen=True, kw_only=True)
class Modality:
    """Settings class, field, readers and file types of one kind of source."""

    name: str
    """Name, such as "image"."""
    config: type[Any]
    """Class of the field's settings."""
    input_spec: type[Any]
    """Class of the input specification, by which a fitting encoder is found."""
    fit: Callable[[Any, Sequence[Any]], SourceField]
    """Function that fits a field to training sources: a vocabulary, or mean and std."""
    load: Callable[[Path], SourceField]
    """Function that loads the field from a run folder."""
    files: tuple[str, ...]
    """Names of the files in a run folder that the field writes."""
    read_pairs: Callable[..., Sequence[Example]]
    """Reader of a file of sources and targets: `(path, second, *, columns)`; the keyword `on_error`
    is only given if it is 'skip'."""
    read_labelled: Callable[..., Sequence[Example]]
    """Reader of a file, or a folder, of sources with labels: `(path, second)`, and `on_error`."""
    read_sources: Callable[[str], Iterable[Any]]
    """Reader of a file, a folder or a list of sources without targets."""
    parse: Callable[[Any], Any] = lambda source: source
    """Function that converts a source of a labelled example, or a line, to a raw item."""
    is_name: Callable[[object], bool] = lambda source: False
    """Function that detects names of items of this modality without opening files."""
    drop_unreadable: Callable[[Sequence[Example], Any], Sequence[Example]] = (
        lambda examples, config: examples
    )
    """Function that drops examples with unreadable sources, and logs their number."""
    merges_references: bool = False
    """Whether held-out examples of one source become one example with several references."""
    medium: Medium | None = None
    """Medium of the files, if a source is one file."""


def _of_files(field: type[StandardizedField[Any]], medium: Medium, spec: type[Any]) -> Modality:
    """Return a modality whose sources are files of one medium."""
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


def _read_texts(
    path: str,
    second: str | None = None,
    *,
    columns: Sequence[str] = (),
    on_error: OnError = "stop",
) -> Sequence[Example]:
    return _check_texts(path, read_corpus(path, second, columns=columns, on_error=on_error))


def _read_labelled_texts(
    path: str, second: str | None = None, *, on_error: OnError = "stop"
) -> Sequence[Example]:
    return _check_texts(path, read_labelled_corpus(path, second, on_error=on_error))


def _parse_text(source: Text) -> Text:
    return as_source(split_source(source))


TEXT_TARGETS = (
    "targets must be texts or labels. For images beside texts, name a recipe, such as "
    "`--recipe scenes-questions-laptop`"
)


def check_sources(path: str, sources: Iterator[str]) -> Iterator[str]:
    """Yield texts to predict for; raise `DataError` if most of the first ones name files."""
    first = list(islice(sources, 1 if path == STANDARD_INPUT else NUM_DETECTED))
    files = [text for text in first if _is_file(text, path)]
    if 2 * len(files) > len(first):
        raise DataError(
            f"{file_name(path)} names files (first: {files[0]}), but this model reads texts."
        )
    return chain(first, sources)


def _check_texts(path: str, examples: Sequence[Example]) -> Sequence[Example]:
    """Return examples of text; raise `DataError` if most sources or targets name files."""
    first = examples[:NUM_DETECTED]
    sources = [one.source for one in first if isinstance(one.source, str)]
    columns = {
        "sources": [name for name in sources if _is_file(name, path) or _is_video(name, path)],
        "targets": [one.target for one in first if _is_file(one.target, path)],
    }
    for column, files in columns.items():
        if 2 * len(files) > len(first):
            expected = _expected(files[0], path) if column == "sources" else TEXT_TARGETS
            raise DataError(
                f"{file_name(path)} names files as {column} (first: {files[0]}), but {expected}."
            )
    return examples


def _is_file(name: str, path: str) -> bool:
    return os.path.isfile(resolve(name, path, ()))


def _is_video(name: str, path: str) -> bool:
    """Return whether a name is that of a folder of frames."""
    folder = resolve(name, path, ())
    return os.path.isdir(folder) and is_folder_of_frames(Path(folder))


def _expected(name: str, path: str) -> str:
    """Return what is expected in place of the name of a file, for messages."""
    if known := next((medium.name for medium in MEDIA if medium.is_name(name)), ""):
        return f"this recipe reads text. Choose one for {known}s, or let `train` choose"
    if _is_video(name, path):
        return "this recipe reads text. Folders of frames are videos: `--recipe moving-laptop`"
    return f"must hold texts or files in a known format: {describe_formats()}"


MODALITIES: dict[str, Modality] = {
    "audio": _of_files(AudioField, AUDIO_FILES, AudioSpec),
    "image": _of_files(ImageField, IMAGE_FILES, ImageSpec),
    "video": _of_files(VideoField, VIDEO_FILES, VideoSpec),
    "text+image": Modality(
        name="text+image",
        config=TextImageConfig,
        input_spec=TextImageSpec,
        fit=TextImageField.fit,
        load=TextImageField.load,
        files=(TOKENIZER.format("source"), ImageField.file.format("source")),
        read_pairs=text_image.read_pairs,
        read_labelled=partial(text_image.read_with_images, read=read_labelled),
        read_sources=text_image.read_lines_with_images,
        parse=split_text_image,
        is_name=text_image.is_name,
        drop_unreadable=text_image.drop_unreadable,
    ),
    "text": Modality(
        name="text",
        config=TokenizerConfig,
        input_spec=TextSpec,
        fit=TextField.fit,
        load=TextField.load,
        files=(TOKENIZER.format("source"),),
        read_pairs=_read_texts,
        read_labelled=_read_labelled_texts,
        read_sources=read_lines,
        parse=_parse_text,
    ),
}
"""Modalities by name; text is last, since any name may be a text."""

_BY_CONFIG = {modality.config: modality for modality in MODALITIES.values()}


def modality_of(config: Any) -> Modality:
    """Return the modality of a source's settings: their `modality`, or a row of the table."""
    modality: Modality | None = getattr(config, "modality", None)
    return modality or _BY_CONFIG[type(config)]


def detect_modality(examples: Sequence[Example]) -> Modality:
    """Return the modality of most of the first sources, by their names.

    Not of all of them: the first line of a file may be a heading.
    """
    first = [example.source for example in examples[:NUM_DETECTED]]
    for modality in MODALITIES.values():
        if 2 * sum(map(modality.is_name, first)) > len(first):
            return modality
    return MODALITIES["text"]


def check_source(source: str, modality: Modality) -> None:
    """Raise `DataError` if a source must be a text, but names a recording, image or video."""
    if modality.name == "text" and os.path.isfile(source):
        check_is_text(source, read_head(source))


def read_any_pairs(
    path: str,
    second: str | None = None,
    *,
    columns: Sequence[str] = (),
    on_error: OnError = "stop",
) -> Sequence[Example]:
    """Read a folder with one subfolder for each label, or a file of pairs, of any modality."""
    if second is None and Path(path).is_dir():
        return _medium_of(Path(path)).read_label_folders(path)
    next((medium for medium in MEDIA if medium.is_name(path)), IMAGE_FILES).check_is_table(path)
    examples = read_corpus(path, second, columns=columns, on_error=on_error)
    return _check_texts(path, examples) if detect_modality(examples).name == "text" else examples


def _medium_of(folder: Path) -> Medium:
    """Return the medium of most files in a folder and below it; raise `DataError` without any."""
    paths = (path for path in folder.rglob("*") if not path.name.startswith("."))
    suffixes = Counter(path.suffix.lower() for path in paths if path.is_file())
    nums = dict.fromkeys((medium.name for medium in MEDIA), 0)
    for suffix, num in suffixes.items():
        # A suffix of several media counts for the first: GIF is an image, not a video.
        for medium in [medium for medium in MEDIA if suffix in medium.suffixes][:1]:
            nums[medium.name] += num
    most = max(MEDIA, key=lambda medium: nums[medium.name])
    if not nums[most.name]:
        found = ", ".join(sorted(filter(None, suffixes))[:5])
        raise DataError(
            f"{folder} holds no recording, image or video of a known format"
            f"{found and f', only files such as {found}'}. It must have a folder for each label. "
            f"Known are {describe_formats()}."
        )
    return most


def fit_source(
    config: SourceConfig, raws: Sequence[Any], *, has_start: bool = False
) -> SourceField:
    """Fit the field of a source to training data.

    Args:
        config: Settings of the field.
        raws: Training sources.
        has_start: Whether a text starts with the start token.
    """
    return _add_start(modality_of(config).fit(config, raws), has_start)


def load_source(config: SourceConfig, folder: Path, *, has_start: bool = False) -> SourceField:
    """Load the field of a source from a run folder."""
    return _add_start(modality_of(config).load(folder), has_start)


def _add_start(field: SourceField, has_start: bool) -> SourceField:
    if has_start and field.text is not None:
        field.text.add_start()
    return field
