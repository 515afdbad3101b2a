import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.audio.specaugment import SpecAugmentConfig, mask_parts


def masked(config, num_frames=(30, 12), size=30, seed=0):
    torch.manual_seed(seed)
    frames = torch.ones(len(num_frames), size, 10)
    return mask_parts(frames, torch.tensor(num_frames), config) == 0


def run_lengths(row):
    """Return the lengths of the runs of True."""
    text = "".join("x" if one else " " for one in row.tolist())
    return [len(run) for run in text.split()]


def test_nothing_is_masked_by_default():
    assert not masked(SpecAugmentConfig()).any()


def test_one_time_mask_is_contiguous_and_within_its_limits():
    config = SpecAugmentConfig(time_masks=1, time_width=5, time_share=0.25)
    seen = {0: set(), 1: set()}
    for seed in range(200):
        masks = masked(config, seed=seed)
        assert torch.equal(masks.any(2), masks.all(2))  # all bins of a frame, or none
        assert not masks[1, 12:].any()  # padding is not masked
        for row in (0, 1):
            seen[row] |= set(run_lengths(masks[row].all(1)) or [0])
    assert seen[0] == {0, 1, 2, 3, 4, 5}  # the width is the limit
    assert seen[1] == {0, 1, 2, 3}  # a quarter of twelve frames is


def test_one_frequency_mask_is_contiguous_and_within_its_limit():
    config = SpecAugmentConfig(mel_masks=1, mel_width=3)
    seen, bins = set(), set()
    for seed in range(200):
        masks = masked(config, seed=seed)
        assert torch.equal(masks.any(1), masks.all(1))
        for row in masks.all(1):
            seen |= set(run_lengths(row) or [0])
            bins |= set(row.nonzero().flatten().tolist())
    assert seen == {0, 1, 2, 3} and bins == set(range(10))


def test_each_recording_is_masked_independently():
    masks = masked(SpecAugmentConfig(time_masks=2, mel_masks=2), num_frames=(30,) * 8)
    assert len({tuple(row.flatten().tolist()) for row in masks}) > 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_masks": -1}, "`time_masks` must be at least 0"),
        ({"mel_width": 0}, "`mel_width` must be at least 1"),
        ({"time_share": 2.0}, "`time_share` must be"),
    ],
)
def test_settings_have_limits(settings, message):
    with pytest.raises(ConfigError, match=message):
        SpecAugmentConfig(**settings)
