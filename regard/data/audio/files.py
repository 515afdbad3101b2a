"""Audio files: suffixes, detection and names in messages."""

from collections.abc import Callable
from pathlib import Path

from regard.core.tables import on_demand
from regard.data.audio.wav import Waveform, split_span
from regard.data.media import Medium


def _has_signature(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"WAVE"
    except OSError:
        return False


NUMBERED_RECORDINGS: dict[str, Callable[[str], Waveform]] = {
    "fsdd": on_demand("regard.data.datasets.fsdd:read_digits"),
    "tones": on_demand("regard.data.datasets.synthetic.tones:synthesize_tones"),
    "tone": on_demand("regard.data.datasets.synthetic.tones:synthesize_tone"),
}
"""Functions that generate numbered recordings, by the prefix of their references."""

AUDIO_FILES = Medium(
    name="recording",
    text="transcript",
    suffixes=frozenset((".flac", ".oga", ".ogg", ".opus", ".wav", ".wave")),
    numbered=NUMBERED_RECORDINGS,
    headings=({"recording", "audio", "path"}, {"transcript", "text", "label"}),
    has_signature=_has_signature,
    split_span=split_span,
)
