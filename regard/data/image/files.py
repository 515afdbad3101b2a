"""Images that a person has: a folder for each label, a file of captions, a list of paths."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from PIL import Image

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.audio.files import holds_sounds, read_sound_folder
from regard.data.example import Example
from regard.data.image.builtin import split_reference
from regard.data.image.io import find_archive, is_there, members
from regard.data.splits import expand_references
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.readers import read_examples

SUFFIXES = frozenset(
    (".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
)
"""What the names of images end in, where a folder holds other files, too."""


def names_images(examples: Sequence[Example]) -> bool:
    """Tell by their names whether the sources of examples are images, most of the first at least.

    Not all of them: a file may begin with a line of headings.
    """
    first = [example.source for example in examples[:100]]
    found = [source for source in first if isinstance(source, str) and _is_name(source)]
    return 2 * len(found) > len(first)


def read_pairs_or_folder(
    path: str, second: str | None = None, *, columns: Sequence[str] = ()
) -> list[Example]:
    """Read a folder with a folder of images or recordings for each label, or a file of pairs."""
    if second is None and Path(path).is_dir():
        return read_sound_folder(path) if holds_sounds(path) else read_image_folder(path)
    _check_is_list(Path(path))
    return read_examples(path, second, columns=columns)


def read_image_folder(path: str | Path) -> list[Example]:
    """Read a folder with a folder for each label, in which the images with this label lie."""
    root = Path(path)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder. Give one with a folder of images for each label.")
    labels = [entry for entry in sorted(root.iterdir()) if _is_folder(entry)]
    images = {folder: _images_in(folder) for folder in labels}
    found = [
        Example(os.path.abspath(image), folder.name)
        for folder in labels
        for image in images[folder]
    ]
    if not found:
        raise DataError(
            f"{root} holds no image in a folder of its own label. Images of cats must lie in "
            f"{root / 'cat'}, for example."
        )
    if without := [entry for entry in sorted(root.iterdir()) if _is_image(entry)]:
        logger.warning(
            "skipped %s in %s that lie in no label's folder (first: %s)",
            _count(without),
            root,
            without[0].name,
        )
    if empty := [folder.name for folder in labels if not images[folder]]:
        logger.warning(
            "left out %s in %s without any image (first: %s)",
            "1 label" if len(empty) == 1 else f"{len(empty):,} labels",
            root,
            empty[0],
        )
    return found


def read_captions(path: str | Path, *, columns: Sequence[str] = ()) -> list[Example]:
    """Read a file of images and captions, one example for each caption.

    It is TSV, CSV or JSON lines as for `read_examples`, with the image in the place of the source:
    a path that starts at the folder of the file. An image may come several times, and in JSON
    lines have a list of captions. Where an image does not exist, the example is skipped and
    counted. Use `merge_references` for one example for each image.

    Args:
        path: The file, or `-` for standard input.
        columns: What stands in each column, as for `read_examples`; one of them is the image.
    """
    _check_is_list(Path(path))
    folder = _folder_of(path)
    examples = expand_references(read_examples(path, columns=columns))
    if several := [example.source for example in examples if not isinstance(example.source, str)]:
        raise DataError(
            f"{file_name(path)} must name one image for each caption, but a source is "
            f"{several[0]}. Name one column 'source' and the others '-'."
        )
    if (examples[0].source.casefold(), examples[0].target.casefold()) == ("image", "caption"):
        examples = examples[1:]
    placed = {example.source: _place(example.source, folder) for example in examples}
    missing = [source for source, reference in placed.items() if not is_there(reference)]
    if len(missing) == len(placed):
        first = f" First: {placed[missing[0]]}." if missing else ""
        raise DataError(
            f"{file_name(path)} names no image that exists.{first} Paths start at the folder of "
            "the file."
        )
    if missing:
        logger.warning(
            "skipped %s in %s that cannot be found (first: %s)",
            _count(missing),
            file_name(path),
            placed[missing[0]],
        )
    absent = frozenset(missing)
    return [
        replace(example, source=placed[example.source])
        for example in examples
        if example.source not in absent
    ]


def read_with_images(
    path: str, second: str | None = None, *, read: Callable[[str, str | None], list[Example]]
) -> list[Example]:
    """Read examples whose source is a text and an image: a path that starts at the file's folder.

    Args:
        path: The file.
        second: As for `read`.
        read: What reads the file.
    """
    folder = _folder_of(path)
    return [
        replace(example, source=(*example.source[:-1], _place(example.source[-1], folder)))
        if isinstance(example.source, tuple)
        else example
        for example in read(path, second)
    ]


def place_images(lines: Iterable[str], path: str) -> Iterator[str]:
    """Let the image of each line, its second column, start at the folder of the file `path`."""
    folder = _folder_of(path)
    for line in lines:
        text, *image = line.split("\t")
        # A line that is no pair is left for whoever reads it to say so.
        if image and image[0].strip():
            image[0] = _place(image[0].strip(), folder)
        yield "\t".join([text, *image])


def find_images(path: str) -> list[str]:
    """Return the references of an image, of a folder or archive of images, or of a list of paths.

    Args:
        path: An image, a numbered picture, a folder (with all below it, in alphabetical order), a
            `.zip` file, or a text file with a path on each line (`-` for standard input). These
            paths start at the folder of the list.
    """
    place = Path(path)
    if split_reference(path) or find_archive(path):
        return [path]
    if place.is_dir():
        found = [str(image) for image in _images_in(place)]
    elif place.suffix.lower() == ".zip" and place.is_file():
        names = (name for name in members(path) if Path(name).suffix.lower() in SUFFIXES)
        found = [f"{path}/{name}" for name in sorted(names)]
    elif path != STANDARD_INPUT and (_is_image(place) or _looks_like_image(place)):
        return [path]
    else:
        folder = _folder_of(path)
        found = [_place(line.strip(), folder) for line in read_lines(path) if line.strip()]
    if not found:
        raise DataError(f"{file_name(path)} holds no image.")
    return found


def _check_is_list(path: Path) -> None:
    """Raise if what should name images is a folder of images, one image or an archive."""
    if path.is_dir():
        raise DataError(
            f"{path} is a folder, but captions stand in a file: on each line an image, a tab and "
            "its caption. A folder of images for each label needs a recipe for classification."
        )
    if path.suffix.lower() in SUFFIXES | {".zip"}:
        raise DataError(
            f"{path} is {'an archive' if path.suffix.lower() == '.zip' else 'an image'}, but "
            "images to learn from lie in a folder for each label, or stand in a file: on each "
            "line an image, a tab and what is said of it."
        )


def _is_name(source: str) -> bool:
    return Path(source).suffix.lower() in SUFFIXES or split_reference(source) is not None


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def _images_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if _is_image(path))


def _is_image(path: Path) -> bool:
    is_hidden = path.name.startswith(".")
    return path.suffix.lower() in SUFFIXES and not is_hidden and path.is_file()


def _looks_like_image(path: Path) -> bool:
    """Tell whether a file without the right suffix is an image by its first bytes."""
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path):
            return True
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False


def _folder_of(path: str | Path) -> Path:
    return Path() if str(path) == STANDARD_INPUT else Path(path).parent


def _place(name: str, folder: Path) -> str:
    # Absolute, because the examples of a run are kept in another folder.
    return name if split_reference(name) else os.path.abspath(folder / name)


def _count(images: Iterable[object]) -> str:
    num = len([*images])
    return "1 image" if num == 1 else f"{num:,} images"
