"""Log-mel frames of recordings."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.audio.resample import resample
from regard.data.audio.wav import Waveform

Spectrum = NDArray[np.float32]
"""(F, M) log-mel energies."""

FLOOR = 1e-6
"""Minimum energy, so that the logarithm of silence is finite; speech has a thousand times more."""


@dataclass(frozen=True)
class Analysis:
    """Settings of log-mel frames."""

    rate: int
    num_mels: int
    window: int
    """Number of samples in a frame."""
    hop: int
    """Number of samples between the starts of consecutive frames."""
    max_seconds: float
    """Maximum duration of a recording."""

    @property
    def num_bins(self) -> int:
        """Size of the Fourier transform: the next power of two, with the window in the middle."""
        return 1 << (self.window - 1).bit_length()

    def num_frames(self, num_samples: int) -> int:
        """Return the number of frames that cover all samples, at least one."""
        return 1 + max(0, -(-(num_samples - self.window) // self.hop))


def log_mel(waveform: Waveform, analysis: Analysis) -> Spectrum:
    """Return the log-mel frames (F, M) of a recording at any rate.

    Frame f covers `window` samples from sample f · `hop` on, padded with zeros at the end.
    """
    samples = torch.from_numpy(resample(waveform.samples, waveform.rate, analysis.rate))
    num = analysis.num_frames(len(samples))
    # torch centres the window within `num_bins` samples.
    before = (analysis.num_bins - analysis.window) // 2
    length = (num - 1) * analysis.hop + analysis.num_bins
    padded = torch.zeros(length)
    kept = samples[: length - before]
    padded[before : before + len(kept)] = kept
    spectrum = torch.stft(
        padded,
        analysis.num_bins,
        hop_length=analysis.hop,
        win_length=analysis.window,
        window=torch.hann_window(analysis.window),
        center=False,
        return_complex=True,
    )
    energies = spectrum.abs().square().T @ mel_filters(analysis)  # (F, M)
    return energies.clamp(min=FLOOR).log().numpy()


@lru_cache(maxsize=8)
def mel_filters(analysis: Analysis) -> Tensor:
    """Return triangular filters, evenly spaced on the mel scale.

    Returns:
        (`num_bins` / 2 + 1, `num_mels`) weights of frequencies in mel bins.
    """
    frequencies = np.fft.rfftfreq(analysis.num_bins, 1 / analysis.rate)
    # Mel scale of O'Shaughnessy 1987.
    highest = 2595 * np.log10(1 + analysis.rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, highest, analysis.num_mels + 2) / 2595) - 1)
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (frequencies[:, None] - low) / (centre - low)
    falling = (high - frequencies[:, None]) / (high - centre)
    filters = np.clip(np.minimum(rising, falling), 0, None)
    if not filters.any(0).all():
        raise ConfigError(
            f"`num_mels` must leave a frequency to each band, but {analysis.num_mels} bands are "
            f"too narrow for a window of {analysis.window} samples. Lower it, or raise "
            "`window_ms`."
        )
    return torch.from_numpy(filters.astype(np.float32))
