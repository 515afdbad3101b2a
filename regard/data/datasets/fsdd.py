"""The Free Spoken Digit Dataset: single digits, and strings of them joined on the spot.

A string depends on seed, part and number alone. Its reference is `fsdd/SEED/PART/NUMBER`,
with the speaker who is held out before the number, if there is one; that of a single digit is
`fsdd/DIGIT_SPEAKER_INDEX`, as its file is called.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from regard.core.errors import DataError
from regard.core.tables import near, one_of
from regard.data.archives import members
from regard.data.audio.wav import Sound, read_file
from regard.data.datasets.loading import find_folder, with_sizes
from regard.data.example import Example
from regard.data.splits import Splits

ARCHIVE = "recordings.zip"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
RATE = 8_000
"""Samples a second of all recordings."""

NUM_TRAIN, NUM_HELD_OUT = 6_000, 500
LENGTHS = 3, 7
"""Digits of a string, at the least and at the most."""

PAUSE = 0.03, 0.2
"""Silence before, between and after digits, in seconds."""

LONG_PAUSE, LONG_SHARE = (0.2, 3.0), 0.05
"""Now and then it is long, in this share of cases: who has heard none takes it for digits."""

NOISE = 1e-3
"""How loud the background of a string is at most; pauses without any would give digits away."""

PARTS: dict[str, range] = {"train": range(10, 50), "valid": range(5, 10), "test": range(5)}
"""Which recordings of every speaker and digit belong to a part; the test is the official one."""


@dataclass(frozen=True, order=True)
class Take:
    """One recording of a digit."""

    digit: int
    speaker: str
    index: int

    @property
    def name(self) -> str:
        """What it is called, without the suffix."""
        return f"{self.digit}_{self.speaker}_{self.index}"


def play_digits(argument: str) -> Sound:
    """Return one digit (`7_jackson_32`) or a string of digits (`0/train/17`)."""
    if "/" not in argument:
        return _read_take(_folder(), argument)
    generator, takes = _sample(argument)
    parts = [_pause(generator)]
    for take in takes:
        parts += [_read_take(_folder(), take.name).samples, _pause(generator)]
    samples = np.concatenate(parts)
    noise = NOISE * generator.uniform() * generator.standard_normal(len(samples))
    return Sound((samples + noise).astype(np.float32), RATE)


def load_fsdd(argument: str, seed: int) -> Splits:
    """Return strings of three to seven digits of one speaker with their words, or single digits.

    Args:
        argument: Nothing for strings, `digits` for single digits with a label each; a number of
            training strings; `speaker=NAME` to hold out a speaker, who is then the test. Several
            are joined by commas, as in `2000,speaker=theo`.
        seed: Other strings.
    """
    kind, num_train, speaker = _parse(argument)
    if kind == "digits":
        parts = [
            [Example(f"fsdd/{take.name}", WORDS[take.digit], tags=(take.speaker,)) for take in side]
            for side in (_takes(_folder(), part, speaker) for part in PARTS)
        ]
    else:
        sizes = {"train": num_train, "valid": NUM_HELD_OUT, "test": NUM_HELD_OUT}
        held_out = f"/{speaker}" if speaker else ""
        parts = [
            [_string(f"{seed}/{part}{held_out}/{number}") for number in range(num)]
            for part, num in sizes.items()
        ]
    test = f"the test is {speaker}'s" if speaker else "official test recordings"
    return with_sizes(parts, f"spoken {kind}, {test}, no recording is shared")


def _folder() -> Path:
    return find_folder("fsdd", ARCHIVE)


def _string(argument: str) -> Example:
    _, takes = _sample(argument)
    text = " ".join(WORDS[take.digit] for take in takes)
    return Example(f"fsdd/{argument}", text, tags=(takes[0].speaker, f"{len(takes)} digits"))


def _sample(argument: str) -> tuple[np.random.Generator, list[Take]]:
    """Return which recordings a string is made of, and the generator that goes on to join them."""
    found = re.fullmatch(r"(\d{1,9})/(train|valid|test)(?:/([a-z]+))?/(\d{1,9})", argument)
    if found is None:
        raise DataError(
            "A recording must look like 'fsdd/7_jackson_32' or 'fsdd/SEED/train/NUMBER', but is "
            f"'fsdd/{argument}'."
        )
    seed, part, speaker, number = int(found[1]), found[2], found[3] or "", int(found[4])
    by_speaker = _by_speaker(_folder(), part, speaker)
    names = sorted(by_speaker)
    generator = np.random.default_rng([seed, [*PARTS].index(part), number])
    takes = by_speaker[names[generator.integers(len(names))]]
    low, high = LENGTHS
    length = int(generator.integers(low, high + 1))
    return generator, [takes[row] for row in generator.integers(len(takes), size=length)]


@lru_cache(maxsize=16)
def _by_speaker(folder: Path, part: str, speaker: str) -> dict[str, list[Take]]:
    """Return the recordings of a part by speaker, equally many of each digit."""
    grouped: dict[str, list[Take]] = {}
    for take in _takes(folder, part, speaker):
        grouped.setdefault(take.speaker, []).append(take)
    return grouped


def _takes(folder: Path, part: str, speaker: str) -> list[Take]:
    """Return the recordings of a part; all of a held-out speaker are the test."""
    takes = _all_takes(folder)
    if speaker:
        names = sorted({take.speaker for take in takes})
        if speaker not in names:
            raise DataError(
                f"What follows 'speaker=' must be {one_of(names)}, but is '{speaker}'."
                f"{near(speaker, names)}"
            )
        if part == "test":
            return [take for take in takes if take.speaker == speaker]
    return [take for take in takes if take.index in PARTS[part] and take.speaker != speaker]


@lru_cache(maxsize=2)
def _all_takes(folder: Path) -> list[Take]:
    names = [
        re.fullmatch(r"(\d)_(\w+)_(\d+)\.wav", name) for name in members(f"{folder}/{ARCHIVE}")
    ]
    takes = sorted(Take(int(name[1]), name[2], int(name[3])) for name in names if name)
    if not takes:
        raise DataError(
            f"{folder / ARCHIVE} must hold recordings such as 7_jackson_32.wav, but holds none."
        )
    return takes


@lru_cache(maxsize=4_000)
def _read_take(folder: Path, name: str) -> Sound:
    """Read a recording once: it comes in many strings."""
    return read_file(f"{folder}/{ARCHIVE}/{name}.wav", max_seconds=60)


def _pause(generator: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    low, high = LONG_PAUSE if generator.uniform() < LONG_SHARE else PAUSE
    return np.zeros(int(RATE * generator.uniform(low, high)), np.float32)


def _parse(argument: str) -> tuple[str, int, str]:
    """Return what is asked for: strings or digits, how many, and whose are held out."""
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
                "What follows 'fsdd:' must be 'digits', a number of training strings, "
                f"'speaker=NAME', or several with commas, but is '{argument}'."
            )
    return kind, num_train, speaker
