"""Audio files: how they are recognised and what messages call them."""

from pathlib import Path

from regard.data.audio.builtin import RECORDINGS
from regard.data.audio.wav import split_span
from regard.data.media import Medium


def _has_signature(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"WAVE"
    except OSError:
        return False


AUDIO_FILES = Medium(
    name="recording",
    text="transcript",
    suffixes=frozenset((".flac", ".oga", ".ogg", ".opus", ".wav", ".wave")),
    numbered=RECORDINGS,
    headings=({"recording", "audio", "path"}, {"transcript", "text", "label"}),
    has_signature=_has_signature,
    split_span=split_span,
)
