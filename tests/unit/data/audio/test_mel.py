import numpy as np
import pytest

from regard.core.errors import ConfigError
from regard.data.audio.mel import FLOOR, Analysis, log_mel, mel_filters
from regard.data.audio.wav import Waveform

SMALL = Analysis(rate=8_000, num_mels=10, window=50, hop=20, max_seconds=10)


def noise(num, seed=0):
    return np.random.default_rng(seed).standard_normal(num).astype(np.float32)


def reference_frames(samples, analysis):
    """Reference implementation: loops over frames, frequencies and mel bins."""
    frames = []
    num_bins = analysis.num_bins
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(analysis.window) / analysis.window)
    highest = 2595 * np.log10(1 + analysis.rate / 2 / 700)
    edges = [
        700 * (10 ** (highest * k / (analysis.num_mels + 1) / 2595) - 1)
        for k in range(analysis.num_mels + 2)
    ]
    for start in range(0, max(len(samples) - analysis.window, 0) + analysis.hop, analysis.hop):
        if start and start + analysis.window - analysis.hop >= len(samples):
            break
        part = np.zeros(analysis.window)
        part[: len(samples[start : start + analysis.window])] = samples[
            start : start + analysis.window
        ]
        bands = np.zeros(analysis.num_mels)
        for number in range(num_bins // 2 + 1):
            turn = np.exp(-2j * np.pi * number * np.arange(analysis.window) / num_bins)
            energy = abs((part * hann * turn).sum()) ** 2
            hertz = number * analysis.rate / num_bins
            for band in range(analysis.num_mels):
                low, centre, high = edges[band : band + 3]
                if low < hertz <= centre:
                    bands[band] += energy * (hertz - low) / (centre - low)
                elif centre < hertz < high:
                    bands[band] += energy * (high - hertz) / (high - centre)
        frames.append(np.log(np.maximum(bands, FLOOR)))
    return np.array(frames)


@pytest.mark.parametrize("num", [1, 49, 50, 51, 70, 71, 200])
def test_frames_equal_the_definition(num):
    found, wanted = log_mel(Waveform(noise(num), 8_000), SMALL), reference_frames(noise(num), SMALL)
    assert found.shape == wanted.shape == (SMALL.num_frames(num), 10)
    assert np.allclose(found, wanted, atol=1e-3)


def test_silence_has_the_minimum_energy_and_no_nan():
    frames = log_mel(Waveform(np.zeros(100, np.float32), 8_000), SMALL)
    assert np.allclose(frames, np.log(FLOOR))


def test_a_tone_is_loudest_in_its_own_band():
    times = np.arange(400) / 8_000
    filters = mel_filters(SMALL).numpy()
    for hertz in (500, 1500, 3000):
        frames = log_mel(Waveform(np.sin(2 * np.pi * hertz * times).astype("f4"), 8_000), SMALL)
        bin_number = round(hertz * SMALL.num_bins / 8_000)
        assert (frames[3:-3].argmax(1) == filters[bin_number].argmax()).all()


def test_another_rate_gives_nearly_the_same_frames():
    def frames(rate):
        samples = np.sin(2 * np.pi * 700 * np.arange(rate // 10) / rate).astype(np.float32)
        return log_mel(Waveform(samples, rate), SMALL)

    low, high = frames(8_000), frames(44_100)
    assert low.shape == high.shape
    band = low.mean(0).argmax()
    assert np.allclose(low[5:-5, band], high[5:-5, band], atol=0.01)


def test_bands_without_a_frequency_are_refused():
    with pytest.raises(
        ConfigError, match=r"`num_mels` must leave a frequency to each band, but 60"
    ):
        mel_filters(Analysis(8_000, 60, 50, 20, 10))
