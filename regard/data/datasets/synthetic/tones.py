"""Synthetic recordings of tone sequences.

A recording depends on its seed and number only. Its reference is `tones/SEED/NUMBER`, or
`tone/SEED/NUMBER` for a single tone. A sequence is assigned to the training, validation or test
split by its words, and a single tone by its reference, independently of the number of examples.
"""

from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray

from regard.data.audio.wav import Waveform
from regard.data.datasets.loading import build_splits, fill_parts, parse_argument, parse_reference
from regard.data.example import Example
from regard.data.splits import Splits

Wave = NDArray[np.float64]

RATE = 8_000
"""Sampling rate in Hz."""

NUM_TRAIN, NUM_HELD_OUT = 3_000, 300
LENGTHS = 3, 7
"""Minimum and maximum number of tones of a sequence."""

NOISE = 0.003
"""Amplitude of background noise; tones have amplitudes of 0.1 to 0.6."""


def synthesize_tones(argument: str, *, kind: str = "tones") -> Waveform:
    """Synthesise the recording `SEED/NUMBER`: tones with a pause before and after each."""
    generator, words = _words(kind, argument)
    parts = [_pause(generator, max_seconds=0.6)]
    for word in words:
        length = int(RATE * generator.uniform(0.1, 0.2))
        tone = TONES[word](np.arange(length) / RATE, generator)
        fade = np.minimum(1, np.minimum(np.arange(length), np.arange(length)[::-1]) / (0.01 * RATE))
        parts += [generator.uniform(0.1, 0.6) * fade * tone, _pause(generator)]
    samples = np.concatenate([*parts, _pause(generator, max_seconds=0.6)])
    samples = samples + NOISE * generator.standard_normal(len(samples))
    return Waveform(samples.astype(np.float32), RATE)


def synthesize_tone(argument: str) -> Waveform:
    """Synthesise the recording `SEED/NUMBER`: a single tone with a pause before and after it."""
    return synthesize_tones(argument, kind="tone")


def load_tones(argument: str, seed: int) -> Splits:
    """Generate sequences of tones with their words, or single tones with their names.

    Args:
        argument: Empty for sequences, `single` for single tones; and a number of training
            examples, as in `500` or `single,500`.
        seed: Seed of the recordings.
    """
    single, num_train = parse_argument(argument, "tones", ("", "single"))
    kind, shared = ("tone", "recording") if single else ("tones", "string")
    references = (f"{seed}/{number}" for number in count())

    def write(reference: str) -> list[Example]:
        _, words = _words(kind, reference)
        return [Example(f"{kind}/{reference}", " ".join(words), tags=(f"{len(words)} tones",))]

    def key(reference: str) -> str:
        return f"{kind}/{reference}" if single else " ".join(_words(kind, reference)[1])

    wanted = (num_train or NUM_TRAIN, NUM_HELD_OUT, NUM_HELD_OUT)
    parts = fill_parts(references, write, wanted, key=key)
    return build_splits(parts, f"tones of seed {seed}, no {shared} is shared")


def _words(kind: str, argument: str) -> tuple[np.random.Generator, list[str]]:
    """Return the words of a recording and the random generator to synthesise it with."""
    _, seed, number = parse_reference(f"{kind}/{argument}", (kind,), "A recording")
    generator = np.random.default_rng([seed, number, len(kind)])
    low, high = LENGTHS if kind == "tones" else (1, 1)
    names = list(TONES)
    chosen = generator.integers(len(names), size=generator.integers(low, high + 1))
    return generator, [names[row] for row in chosen]


def _pause(generator: np.random.Generator, max_seconds: float = 0.12) -> Wave:
    """Return a pause, long in few cases: models trained without long pauses label them as tones."""
    return np.zeros(int(RATE * (0.03 + (max_seconds - 0.03) * generator.uniform() ** 2)))


def _glide(first: float, last: float) -> Callable[[Wave, np.random.Generator], Wave]:
    """Return a tone whose frequency changes exponentially from about `first` to `last` Hz."""

    def synthesize(times: Wave, generator: np.random.Generator) -> Wave:
        shift = generator.uniform(0.9, 1.1)
        progress = times / times[-1]
        frequencies = shift * first * (last / first) ** progress
        return _sine(frequencies, generator)

    return synthesize


def _warble(times: Wave, generator: np.random.Generator) -> Wave:
    speed = generator.uniform(25, 35)
    return _sine(
        1000 * generator.uniform(0.9, 1.1) * 1.4 ** np.sin(2 * np.pi * speed * times), generator
    )


def _buzz(times: Wave, generator: np.random.Generator) -> Wave:
    """Return a low sawtooth wave."""
    frequency = generator.uniform(90, 130)
    wave: Wave = 2 * ((times * frequency + generator.uniform()) % 1) - 1
    return wave


def _hiss(times: Wave, generator: np.random.Generator) -> Wave:
    return np.clip(generator.standard_normal(len(times)) / 3, -1, 1)


def _sine(frequencies: Wave, generator: np.random.Generator) -> Wave:
    wave: Wave = np.sin(2 * np.pi * (np.cumsum(frequencies) / RATE + generator.uniform()))
    return wave


TONES: dict[str, Callable[[Wave, np.random.Generator], Wave]] = {
    "low": _glide(300, 300),
    "middle": _glide(900, 900),
    "high": _glide(2500, 2500),
    "rising": _glide(400, 2000),
    "falling": _glide(2000, 400),
    "warble": _warble,
    "buzz": _buzz,
    "hiss": _hiss,
}
"""Synthesis functions by name of the tone."""
