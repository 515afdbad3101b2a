"""Decoder of recordings to log-mel frames."""

from functools import lru_cache, partial

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.core.progress import count_each, counting
from regard.data.audio.files import AUDIO_FILES, NUMBERED_RECORDINGS
from regard.data.audio.mel import Analysis, Spectrum, log_mel
from regard.data.audio.wav import Waveform, is_silent, read_file
from regard.data.media import Decoder


def audio_decoder(analysis: Analysis) -> Decoder:
    """Return a decoder of recordings to log-mel frames (F, M)."""
    return Decoder(
        medium=AUDIO_FILES,
        settings=analysis,
        read=partial(_read, analysis=analysis),
        read_numbered=partial(_read_numbered, analysis),
        row=(analysis.num_mels,),
        dtype="<f4",
    )


def open_audio(reference: str, *, max_seconds: float) -> Waveform:
    """Return the samples of a recording.

    Args:
        reference: A path, or a path through a `.zip` file to a member of it, either with a part
            such as `#t=2.5,4`; or a numbered recording of a data set such as `tones/0/17`.
        max_seconds: Maximum duration; longer recordings raise `DataError`.
    """
    if numbered := AUDIO_FILES.split_numbered(reference):
        return NUMBERED_RECORDINGS[numbered[0]](numbered[1])
    return read_file(reference, max_seconds=max_seconds)


def _read(reference: str, *, analysis: Analysis) -> Spectrum:
    waveform = read_file(reference, max_seconds=analysis.max_seconds)
    if is_silent(waveform.samples):
        raise DataError(f"{reference} holds only silence. Record it again, or leave it out.")
    if waveform.rate != analysis.rate:
        _log_resampling(waveform.rate, analysis.rate)
    return log_mel(waveform, analysis)


@lru_cache(maxsize=16)
def _log_resampling(rate: int, new_rate: int) -> None:
    """Log that recordings are resampled, once for each rate."""
    logger.info(f"recordings of {rate:,} samples a second are resampled to {new_rate:,} (`rate`)")


@lru_cache(maxsize=2)
def _read_numbered(analysis: Analysis, name: str, arguments: tuple[str, ...]) -> list[Spectrum]:
    """Return frames of numbered recordings; the latest are cached for statistics and training."""
    read = NUMBERED_RECORDINGS[name]
    with counting("Reading recordings", len(arguments)) as advance:
        return [log_mel(read(argument), analysis) for argument in count_each(arguments, advance)]
