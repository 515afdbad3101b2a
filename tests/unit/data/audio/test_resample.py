import numpy as np
import pytest

from regard.data.audio.resample import NUM_ZEROS, ROLL_OFF, resample


def tone(rate, frequency, seconds=0.2):
    return np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate).astype("f4")


@pytest.mark.parametrize(
    "rates", [(44_100, 8_000), (16_000, 8_000), (8_000, 16_000), (11_025, 8_000)]
)
def test_a_tone_keeps_its_frequency(rates):
    old, new = rates
    found, wanted = resample(tone(old, 300), old, new), tone(new, 300)
    assert len(found) == len(wanted) and found.dtype == np.float32
    inner = slice(len(wanted) // 4, -len(wanted) // 4)  # the ends are padded with zeros
    assert np.abs(found - wanted)[inner].max() < 1e-3


def test_frequencies_above_the_new_limit_do_not_alias():
    found = resample(tone(16_000, 5_000), 16_000, 8_000)
    assert np.abs(found[200:-200]).max() < 0.01


def test_resampling_equals_the_sum_over_all_samples():
    samples = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    cutoff = ROLL_OFF * 5 / 7
    times = np.arange(29)[:, None] * 7 / 5 - np.arange(40)
    near = np.abs(times * cutoff) < NUM_ZEROS
    window = np.where(near, np.cos(times * cutoff / NUM_ZEROS * np.pi / 2) ** 2, 0)
    wanted = (cutoff * np.sinc(cutoff * times) * window) @ samples
    assert np.allclose(resample(samples, 700, 500), wanted, atol=1e-6)


def test_the_same_rate_changes_nothing():
    samples = tone(8_000, 300)
    assert resample(samples, 8_000, 8_000) is samples
