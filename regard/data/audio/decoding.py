"""Many references → log-mel frames, each recording decoded once."""

from functools import lru_cache, partial

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.audio.files import AUDIO_FILES, RECORDINGS
from regard.data.audio.mel import Analysis, Spectrum, log_mel
from regard.data.audio.wav import Sound, is_silent, read_file
from regard.data.media import Decoder


def audio_decoder(analysis: Analysis) -> Decoder:
    """Return how recordings become log-mel frames (F, M)."""
    return Decoder(
        medium=AUDIO_FILES,
        settings=analysis,
        read=partial(_read, analysis=analysis),
        read_numbered=partial(_read_numbered, analysis),
        row=(analysis.num_mels,),
        dtype="<f4",
    )


def open_sound(reference: str, *, max_seconds: float) -> Sound:
    """Return the samples of a recording.

    Args:
        reference: A path, a path through a `.zip` file to a member of it, either with a part such
            as `#t=2.5,4`, or a numbered recording of a data set such as `tones/0/17`.
        max_seconds: A longer one is refused.
    """
    if found := AUDIO_FILES.split_numbered(reference):
        return RECORDINGS[found[0]](found[1])
    return read_file(reference, max_seconds=max_seconds)


def _read(reference: str, *, analysis: Analysis) -> Spectrum:
    sound = read_file(reference, max_seconds=analysis.max_seconds)
    if is_silent(sound.samples):
        raise DataError(
            f"{reference} holds no sound but silence. Record it again, or leave it out."
        )
    if sound.rate != analysis.rate:
        _log_resampling(sound.rate, analysis.rate)
    return log_mel(sound, analysis)


@lru_cache(maxsize=16)
def _log_resampling(rate: int, wanted: int) -> None:
    """Log that recordings are resampled, once for each rate."""
    logger.info(f"recordings of {rate:,} samples a second are brought to {wanted:,} (`rate`)")


@lru_cache(maxsize=2)
def _read_numbered(analysis: Analysis, name: str, arguments: tuple[str, ...]) -> list[Spectrum]:
    """Return frames of numbered recordings; the last are kept, to be measured and trained on."""
    return [log_mel(RECORDINGS[name](argument), analysis) for argument in arguments]
