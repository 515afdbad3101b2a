"""Recordings that a person has: a folder for each label, a file of transcripts, a list of paths."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.audio.builtin import split_recording
from regard.data.audio.wav import split_span
from regard.data.example import Example
from regard.data.image.io import find_archive, is_there, members
from regard.data.label_folders import pair_with_labels
from regard.data.splits import expand_references
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.readers import read_examples

SUFFIXES = frozenset((".flac", ".oga", ".ogg", ".opus", ".wav", ".wave"))
"""What the names of recordings end in, where a folder holds other files, too."""

HEADINGS = ({"recording", "audio", "path"}, {"transcript", "text", "label"})
"""What the columns of a file may be called in its first line."""


def names_sounds(examples: Sequence[Example]) -> bool:
    """Tell by their names whether the sources of examples are recordings, most of the first."""
    first = [example.source for example in examples[:100]]
    found = [source for source in first if isinstance(source, str) and _is_name(source)]
    return 2 * len(found) > len(first)


def holds_sounds(path: str | Path) -> bool:
    """Tell whether there is a recording in a folder or below it."""
    return any(_is_sound(file) for file in Path(path).rglob("*"))


def read_sound_folder(path: str | Path) -> list[Example]:
    """Read a folder with a folder for each label, in which the recordings with this label lie."""
    root = Path(path)
    found = pair_with_labels(root, _sounds_in)
    if not found:
        raise DataError(
            f"{root} holds no recording in a folder of its own label. Recordings of cats must lie "
            f"in {root / 'cat'}, for example."
        )
    return found


def read_transcripts(path: str | Path, *, columns: Sequence[str] = ()) -> list[Example]:
    """Read a file of recordings and transcripts, one example for each.

    It is TSV, CSV or JSON lines as for `read_examples`, with the recording in the place of the
    source: a path that starts at the folder of the file, or a part such as `long.wav#t=2.5,4`.
    Where a recording does not exist, the example is skipped and counted.

    Args:
        path: The file, or `-` for standard input.
        columns: What stands in each column, as for `read_examples`; one of them is the recording.
    """
    _check_is_list(Path(path))
    folder = _folder_of(path)
    examples = expand_references(read_examples(path, columns=columns))
    if several := [example.source for example in examples if not isinstance(example.source, str)]:
        raise DataError(
            f"{file_name(path)} must name one recording for each transcript, but a source is "
            f"{several[0]}. Name one column 'source' and the others '-'."
        )
    first = examples[0].source.casefold(), examples[0].target.casefold()
    if all(word in names for word, names in zip(first, HEADINGS, strict=True)):
        examples = examples[1:]
    placed = [replace(example, source=_place(example.source, folder)) for example in examples]
    found = [example for example in placed if _is_there(example.source)]
    missing = [example.source for example in placed if not _is_there(example.source)]
    if not found:
        raise DataError(
            f"{file_name(path)} names no recording that exists."
            f"{f' First: {missing[0]}.' if missing else ''} Paths start at the folder of the file."
        )
    if missing:
        logger.warning(
            "skipped %s of %s examples in %s whose recording does not exist (first: %s)",
            f"{len(missing):,}",
            f"{len(placed):,}",
            file_name(path),
            missing[0],
        )
    return found


def find_sounds(path: str) -> list[str]:
    """Return the references of a recording, of a folder or archive of them, or of a list of paths.

    Args:
        path: A recording, a part of one, a numbered recording, a folder (with all below it, in
            alphabetical order), a `.zip` file, or a text file with a path on each line (`-` for
            standard input). These paths start at the folder of the list.
    """
    place = Path(path)
    if split_recording(path) or find_archive(path) or split_span(path):
        return [path]
    if place.is_dir():
        found = [str(file) for file in _sounds_in(place)]
    elif place.suffix.lower() == ".zip" and place.is_file():
        names = (name for name in members(path) if Path(name).suffix.lower() in SUFFIXES)
        found = [f"{path}/{name}" for name in sorted(names)]
    elif path != STANDARD_INPUT and (_is_sound(place) or _looks_like_wave(place)):
        return [path]
    else:
        folder = _folder_of(path)
        found = [_place(line.strip(), folder) for line in read_lines(path) if line.strip()]
    if not found:
        raise DataError(f"{file_name(path)} holds no recording.")
    return found


def _check_is_list(path: Path) -> None:
    """Raise if what should name recordings is a folder of them, one of them or an archive."""
    if path.is_dir():
        raise DataError(
            f"{path} is a folder, but transcripts stand in a file: on each line a recording, a tab "
            "and its transcript. A folder for each label needs a recipe for classification."
        )
    if path.suffix.lower() in SUFFIXES | {".zip"}:
        raise DataError(
            f"{path} is {'an archive' if path.suffix.lower() == '.zip' else 'a recording'}, but "
            "recordings to learn from stand in a file: on each line a recording, a tab and its "
            "transcript."
        )


def _is_name(source: str) -> bool:
    path = (split_span(source) or (source,))[0]
    return Path(path).suffix.lower() in SUFFIXES or split_recording(source) is not None


def _sounds_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if _is_sound(path))


def _is_sound(path: Path) -> bool:
    is_hidden = path.name.startswith(".")
    return path.suffix.lower() in SUFFIXES and not is_hidden and path.is_file()


def _looks_like_wave(path: Path) -> bool:
    """Tell whether a file without the right suffix is a recording by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"WAVE"
    except OSError:
        return False


def _is_there(reference: str) -> bool:
    path = (split_span(reference) or (reference,))[0]
    return split_recording(reference) is not None or is_there(path)


def _folder_of(path: str | Path) -> Path:
    return Path() if str(path) == STANDARD_INPUT else Path(path).parent


def _place(name: str, folder: Path) -> str:
    # Absolute, because the examples of a run are kept in another folder.
    return name if split_recording(name) else os.path.abspath(folder / name)
