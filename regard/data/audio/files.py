"""Audio files: how they are recognised and what messages call them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from regard.data.audio.wav import Sound, split_span
from regard.data.datasets.fsdd import play_digits
from regard.data.datasets.synthetic.tones import play_tones
from regard.data.media import Medium


def _has_signature(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"WAVE"
    except OSError:
        return False


RECORDINGS: dict[str, Callable[[str], Sound]] = {
    "fsdd": play_digits,
    "tones": play_tones,
    "tone": partial(play_tones, kind="tone"),
}
"""Where numbered recordings come from, by the name that their references begin with."""

AUDIO_FILES = Medium(
    name="recording",
    text="transcript",
    suffixes=frozenset((".flac", ".oga", ".ogg", ".opus", ".wav", ".wave")),
    numbered=RECORDINGS,
    headings=({"recording", "audio", "path"}, {"transcript", "text", "label"}),
    has_signature=_has_signature,
    split_span=split_span,
)
