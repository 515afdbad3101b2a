"""Numbered recordings of data sets with a name, which have no files of their own."""

from collections.abc import Callable

from regard.data.audio.wav import Sound
from regard.data.datasets.fsdd import play_digits
from regard.data.datasets.synthetic.tones import play_tone, play_tones

RECORDINGS: dict[str, Callable[[str], Sound]] = {
    "fsdd": play_digits,
    "tones": play_tones,
    "tone": play_tone,
}
"""Where numbered recordings come from, by the name that their references begin with."""
