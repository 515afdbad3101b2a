"""Many references → log-mel frames, each recording read once; of many files, kept in a cache."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.audio.builtin import RECORDINGS, split_recording
from regard.data.audio.cache import Heard, SoundCache
from regard.data.audio.mel import Analysis, Spectrum, log_mel
from regard.data.audio.wav import Sound, is_silent, read_file
from regard.data.datasets.download import cache_folder

NUM_CACHED = 64
"""Files from which on the cache is used; fewer are soon read again."""


def hear(references: Iterable[str], analysis: Analysis) -> Heard:
    """Read recordings, each once however often it is named, and note which cannot be read.

    Many files are read once for all: the next time they come from the cache, unless the analysis
    or the file has changed.
    """
    numbered: dict[str, list[tuple[str, str]]] = {}
    files: list[str] = []
    for reference in dict.fromkeys(references):
        if found := split_recording(reference):
            numbered.setdefault(found[0], []).append((reference, found[1]))
        else:
            files.append(reference)
    heard = _hear_files(files, analysis)
    for name, named in numbered.items():
        frames = _play(name, tuple(argument for _, argument in named), analysis)
        heard.add((reference for reference, _ in named), frames)
    return heard


def open_sound(reference: str, *, max_seconds: float) -> Sound:
    """Return the samples of a recording.

    Args:
        reference: A path, a path through a `.zip` file to a member of it, either with a part such
            as `#t=2.5,4`, or a numbered recording of a data set such as `tones/0/17`.
        max_seconds: A longer one is refused.
    """
    if found := split_recording(reference):
        return RECORDINGS[found[0]](found[1])
    return read_file(reference, max_seconds=max_seconds)


def _hear_files(references: Sequence[str], analysis: Analysis) -> Heard:
    heard = Heard()
    if len(references) >= NUM_CACHED:
        folder = cache_folder() / "sounds"
        cache = SoundCache(folder, analysis)
        heard = cache.load(references)
        missing = [reference for reference in references if reference not in heard]
        if len(missing) >= NUM_CACHED:
            logger.info("reading %s recordings, to be kept in %s", f"{len(missing):,}", folder)
            cache.save(missing, _read(missing, analysis))
            heard = cache.load(references)
            if any(reference not in heard for reference in missing):
                raise DataError("Recordings have changed while they were read. Try again.")
    missing = [reference for reference in references if reference not in heard]
    heard.add(missing, _read(missing, analysis))
    return heard


def _read(references: Iterable[str], analysis: Analysis) -> Iterator[Spectrum | str]:
    for reference in references:
        try:
            sound = read_file(reference, max_seconds=analysis.max_seconds)
        except DataError as error:
            yield str(error)
            continue
        if is_silent(sound.samples):
            yield f"{reference} holds no sound but silence. Record it again, or leave it out."
            continue
        if sound.rate != analysis.rate:
            _tell_rates(sound.rate, analysis.rate)
        yield log_mel(sound, analysis)


@lru_cache(maxsize=16)
def _tell_rates(rate: int, wanted: int) -> None:
    """Say that recordings are resampled, once for each rate."""
    logger.info(
        "recordings of %s samples a second are brought to %s (`rate`)", f"{rate:,}", f"{wanted:,}"
    )


@lru_cache(maxsize=2)
def _play(name: str, arguments: tuple[str, ...], analysis: Analysis) -> list[Spectrum]:
    """Return the frames of numbered recordings; the last are kept, as who measures also trains."""
    return [log_mel(RECORDINGS[name](argument), analysis) for argument in arguments]
