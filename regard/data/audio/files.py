"""Audio files: formats, numbered recordings and names in messages."""

from collections.abc import Callable

from regard.core.tables import on_demand
from regard.data.audio.wav import Waveform, split_span
from regard.data.formats import AUDIO
from regard.data.media import Medium

NUMBERED_RECORDINGS: dict[str, Callable[[str], Waveform]] = {
    "fsdd": on_demand("regard.data.datasets.fsdd:read_digits"),
    "tones": on_demand("regard.data.datasets.synthetic.tones:synthesize_tones"),
    "tone": on_demand("regard.data.datasets.synthetic.tones:synthesize_tone"),
}
"""Functions that generate numbered recordings, by the prefix of their references."""

AUDIO_FILES = Medium(
    formats=AUDIO,
    text="transcript",
    numbered=NUMBERED_RECORDINGS,
    headings=({"recording", "audio", "path"}, {"transcript", "text", "label"}),
    split_span=split_span,
)
