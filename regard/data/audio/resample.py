"""Sound at one sampling rate → at another."""

from math import ceil, gcd

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from regard.data.audio.wav import Samples

NUM_ZEROS = 16
"""Zeros of the filter on each side; more of them cut more sharply at the highest frequency."""

ROLL_OFF = 0.95
"""Share of the lower rate's frequencies that pass."""


def resample(samples: Samples, rate: int, new_rate: int) -> Samples:
    """Bring samples to another rate with a windowed sinc, phase by phase (a polyphase filter).

    What is too high for the new rate is filtered out, so that it does not come back as another
    tone. Beyond its ends a recording is silent.

    Args:
        samples: (L,).
        rate: Samples a second.
        new_rate: What they become.
    """
    if rate == new_rate or not len(samples):
        return samples
    divisor = gcd(rate, new_rate)
    old, new = rate // divisor, new_rate // divisor
    cutoff = ROLL_OFF * min(1.0, new / old)
    reach = ceil(NUM_ZEROS / cutoff)
    num = ceil(len(samples) * new / old)
    padded = np.pad(samples.astype(np.float64), (reach, reach + old + 1))
    windows = sliding_window_view(padded, 2 * reach + 1)
    found = np.empty(num)
    offsets = np.arange(-reach, reach + 1, dtype=np.float64)
    for phase in range(min(new, num)):
        # Every `new`-th sample lies at the same distance from the old one before it.
        place, rest = divmod(phase * old, new)
        times = offsets - rest / new
        window = np.cos(np.clip(times * cutoff / NUM_ZEROS, -1, 1) * np.pi / 2) ** 2  # Hann
        weights = cutoff * np.sinc(cutoff * times) * window
        count = len(range(phase, num, new))
        found[phase::new] = windows[place::old][:count] @ weights
    return found.astype(np.float32)
