"""Free Spoken Digit Dataset: single digits, and strings of digits concatenated on demand.

A string depends on seed, split and number only. Its reference is `fsdd/SEED/SPLIT/NUMBER`, with
the name of a held-out speaker, if any, before the number. The reference of a single digit is
`fsdd/DIGIT_SPEAKER_INDEX`, the name of its file.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from regard.core.errors import DataError
from regard.core.tables import did_you_mean, one_of
from regard.data.archives import members
from regard.data.audio.wav import Waveform, read_file
from regard.data.datasets.loading import build_splits, find_folder
from regard.data.example import Example
from regard.data.splits import Splits

ARCHIVE = "recordings.zip"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
RATE = 8_000
"""Sampling rate of all recordings, in Hz."""

NUM_TRAIN, NUM_HELD_OUT = 6_000, 500
LENGTHS = 3, 7
"""Minimum and maximum number of digits of a string."""

PAUSE = 0.03, 0.2
"""Minimum and maximum pause before, between and after digits, in seconds."""

LONG_PAUSE, LONG_SHARE = (0.2, 3.0), 0.05
"""Long pauses and their share; a model trained without them transcribes them as digits."""

NOISE = 1e-3
"""Maximum amplitude of background noise; exact silence in pauses would reveal the digits."""

PARTS: dict[str, range] = {"train": range(10, 50), "valid": range(5, 10), "test": range(5)}
"""Indices of the recordings per speaker and digit, by split; the test split is the official one."""


@dataclass(frozen=True, order=True)
class Clip:
    """One recording of a digit."""

    digit: int
    speaker: str
    index: int

    @property
    def name(self) -> str:
        """File name without the suffix."""
        return f"{self.digit}_{self.speaker}_{self.index}"


def read_digits(argument: str) -> Waveform:
    """Read one digit (`7_jackson_32`) or a string of digits (`0/train/17`)."""
    if "/" not in argument:
        return _read_clip(_folder(), argument)
    generator, clips = _sample(argument)
    parts = [_pause(generator)]
    for clip in clips:
        parts += [_read_clip(_folder(), clip.name).samples, _pause(generator)]
    samples = np.concatenate(parts)
    noise = NOISE * generator.uniform() * generator.standard_normal(len(samples))
    return Waveform((samples + noise).astype(np.float32), RATE)


def load_fsdd(argument: str, seed: int) -> Splits:
    """Load strings of three to seven digits of one speaker with their words, or single digits.

    Args:
        argument: Empty for strings, `digits` for single digits with labels; a number of training
            strings; `speaker=NAME` to use one speaker as the test split. Several are joined by
            commas, as in `2000,speaker=theo`.
        seed: Seed of the strings.
    """
    kind, num_train, speaker = _parse(argument)
    if kind == "digits":
        parts = [
            [
                Example(f"fsdd/{clip.name}", WORDS[clip.digit], tags=(clip.speaker,))
                for clip in clips
            ]
            for clips in (_clips(_folder(), part, speaker) for part in PARTS)
        ]
    else:
        sizes = {"train": num_train, "valid": NUM_HELD_OUT, "test": NUM_HELD_OUT}
        held_out = f"/{speaker}" if speaker else ""
        parts = [
            [_string(f"{seed}/{part}{held_out}/{number}") for number in range(num)]
            for part, num in sizes.items()
        ]
    test = f"test speaker {speaker}" if speaker else "official test recordings"
    return build_splits(parts, f"spoken {kind}, {test}, no recording is shared")


def _folder() -> Path:
    return find_folder("fsdd", ARCHIVE)


def _string(argument: str) -> Example:
    _, clips = _sample(argument)
    text = " ".join(WORDS[clip.digit] for clip in clips)
    return Example(f"fsdd/{argument}", text, tags=(clips[0].speaker, f"{len(clips)} digits"))


def _sample(argument: str) -> tuple[np.random.Generator, list[Clip]]:
    """Return the recordings of a string and the random generator for its pauses and noise."""
    match = re.fullmatch(r"(\d{1,9})/(train|valid|test)(?:/([a-z]+))?/(\d{1,9})", argument)
    if match is None:
        raise DataError(
            "A recording must have the form 'fsdd/7_jackson_32' or 'fsdd/SEED/train/NUMBER', but "
            f"is 'fsdd/{argument}'."
        )
    seed, part, speaker, number = int(match[1]), match[2], match[3] or "", int(match[4])
    by_speaker = _by_speaker(_folder(), part, speaker)
    names = sorted(by_speaker)
    generator = np.random.default_rng([seed, [*PARTS].index(part), number])
    clips = by_speaker[names[generator.integers(len(names))]]
    low, high = LENGTHS
    length = int(generator.integers(low, high + 1))
    return generator, [clips[row] for row in generator.integers(len(clips), size=length)]


@lru_cache(maxsize=16)
def _by_speaker(folder: Path, part: str, speaker: str) -> dict[str, list[Clip]]:
    """Return the recordings of a split by speaker, equally many per digit."""
    grouped: dict[str, list[Clip]] = {}
    for clip in _clips(folder, part, speaker):
        grouped.setdefault(clip.speaker, []).append(clip)
    return grouped


def _clips(folder: Path, part: str, speaker: str) -> list[Clip]:
    """Return the recordings of a split; all recordings of a held-out speaker are the test."""
    clips = _all_clips(folder)
    if speaker:
        names = sorted({clip.speaker for clip in clips})
        if speaker not in names:
            raise DataError(
                f"`speaker` must be {one_of(names)}, but is '{speaker}'."
                f"{did_you_mean(speaker, names)}"
            )
        if part == "test":
            return [clip for clip in clips if clip.speaker == speaker]
    return [clip for clip in clips if clip.index in PARTS[part] and clip.speaker != speaker]


@lru_cache(maxsize=2)
def _all_clips(folder: Path) -> list[Clip]:
    names = [
        re.fullmatch(r"(\d)_(\w+)_(\d+)\.wav", name) for name in members(f"{folder}/{ARCHIVE}")
    ]
    clips = sorted(Clip(int(name[1]), name[2], int(name[3])) for name in names if name)
    if not clips:
        raise DataError(
            f"{folder / ARCHIVE} must contain recordings such as 7_jackson_32.wav, but has none."
        )
    return clips


@lru_cache(maxsize=4_000)
def _read_clip(folder: Path, name: str) -> Waveform:
    """Read a recording; cached, as it occurs in many strings."""
    return read_file(f"{folder}/{ARCHIVE}/{name}.wav", max_seconds=60)


def _pause(generator: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    low, high = LONG_PAUSE if generator.uniform() < LONG_SHARE else PAUSE
    return np.zeros(int(RATE * generator.uniform(low, high)), np.float32)


def _parse(argument: str) -> tuple[str, int, str]:
    """Return the kind (strings or digits), the number of training strings and the test speaker."""
    kind, num_train, speaker = "strings", NUM_TRAIN, ""
    for word in filter(None, argument.split(",")):
        if word == "digits":
            kind = word
        elif re.fullmatch(r"[1-9]\d{0,6}", word, re.ASCII):
            num_train = int(word)
        elif word.startswith("speaker="):
            speaker = word.removeprefix("speaker=")
        else:
            raise DataError(
                "The argument of 'fsdd:' must be 'digits', a number of training strings, "
                f"'speaker=NAME', or several with commas, but is '{argument}'."
            )
    return kind, num_train, speaker
