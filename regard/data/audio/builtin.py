"""Numbered recordings of data sets with a name, which have no files of their own."""

from collections.abc import Callable

from regard.data.audio.wav import Sound
from regard.data.datasets.fsdd import play_digits
from regard.data.datasets.synthetic.tones import play_tone, play_tones


def split_recording(reference: str) -> tuple[str, str] | None:
    """Return name and argument of a numbered recording, None for everything else.

    A file of the same name is found under `./tones/0/5`.
    """
    name, _, argument = reference.partition("/")
    return (name, argument) if name in RECORDINGS and argument[-1:].isdecimal() else None


RECORDINGS: dict[str, Callable[[str], Sound]] = {
    "fsdd": play_digits,
    "tones": play_tones,
    "tone": play_tone,
}
"""Where numbered recordings come from, by the name that their references begin with."""
