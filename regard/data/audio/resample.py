"""Resampling of recordings."""

from math import ceil, gcd

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from regard.data.audio.wav import Samples

NUM_ZEROS = 16
"""Number of zero crossings of the filter on each side; more give a sharper cutoff."""

ROLL_OFF = 0.95
"""Cutoff as a share of the highest frequency of the lower rate."""


def resample(samples: Samples, rate: int, new_rate: int) -> Samples:
    """Resample with a windowed sinc filter, phase by phase (a polyphase filter).

    The filter removes frequencies that are too high for the new rate and would alias. Both ends of
    the recording are padded with zeros.

    Args:
        samples: (L,).
        rate: Samples a second of the input.
        new_rate: Samples a second of the output.
    """
    if rate == new_rate or not len(samples):
        return samples
    divisor = gcd(rate, new_rate)
    old, new = rate // divisor, new_rate // divisor
    cutoff = ROLL_OFF * min(1.0, new / old)
    radius = ceil(NUM_ZEROS / cutoff)
    num = ceil(len(samples) * new / old)
    padded = np.pad(samples.astype(np.float64), (radius, radius + old + 1))
    windows = sliding_window_view(padded, 2 * radius + 1)
    resampled = np.empty(num)
    offsets = np.arange(-radius, radius + 1, dtype=np.float64)
    for phase in range(min(new, num)):
        # Every `new`-th output sample has the same distance to the input sample before it.
        start, rest = divmod(phase * old, new)
        times = offsets - rest / new
        window = np.cos(np.clip(times * cutoff / NUM_ZEROS, -1, 1) * np.pi / 2) ** 2  # Hann
        weights = cutoff * np.sinc(cutoff * times) * window
        count = len(range(phase, num, new))
        resampled[phase::new] = windows[start::old][:count] @ weights
    return resampled.astype(np.float32)
