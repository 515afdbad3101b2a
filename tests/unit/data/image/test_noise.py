"""Noise on images: its amount and reproducibility."""

import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.image.noise import PixelNoiseConfig, add_fixed_noise, add_noise

GREY = torch.full((4, 3, 40, 30), 0.5)
ALL = PixelNoiseConfig(gaussian=0.1, salt_and_pepper=0.2, square=5)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_no_noise_by_default():
    assert add_noise(GREY, PixelNoiseConfig()) is GREY
    assert not PixelNoiseConfig().is_any and ALL.is_any


def test_gaussian_noise_has_the_given_std():
    found = add_noise(GREY, PixelNoiseConfig(gaussian=0.1), seeded()) - GREY
    assert float(found.mean()) == pytest.approx(0.0, abs=0.005)
    assert float(found.std()) == pytest.approx(0.1, rel=0.03)


def test_salt_and_pepper_change_whole_pixels():
    found = add_noise(GREY, PixelNoiseConfig(salt_and_pepper=0.3), seeded())
    assert torch.equal(found[:, :1].expand(-1, 3, -1, -1), found)
    assert set(found.unique().tolist()) == {0.0, 0.5, 1.0}
    for value in (0.0, 1.0):
        assert float((found == value).float().mean()) == pytest.approx(0.15, abs=0.02)


def test_square_covers_the_same_number_of_pixels_everywhere():
    found = add_noise(torch.zeros(400, 1, 9, 7), PixelNoiseConfig(square=3), seeded())
    assert found.flatten(1).count_nonzero(1).tolist() == [9] * 400
    assert len({tuple(one.flatten().tolist()) for one in found}) > 20
    # Every pixel can be hidden, those at the edge as well.
    assert found.any(0).all()


def test_values_stay_between_black_and_white():
    found = add_noise(torch.rand(4, 3, 8, 8), PixelNoiseConfig(gaussian=2.0))
    assert float(found.min()) >= 0 and float(found.max()) <= 1


def test_frames_of_a_video_have_independent_noise():
    found = add_noise(torch.full((2, 3, 1, 8, 8), 0.5), ALL, seeded())
    assert found.shape == (2, 3, 1, 8, 8)
    assert not torch.equal(found[0, 0], found[0, 1])


def test_fixed_noise_depends_only_on_name_and_seed():
    images = torch.rand(3, 3, 8, 8)
    together = add_fixed_noise(images, ALL, ["a", "b", "c"], seed=1)
    alone = add_fixed_noise(images[1:2], ALL, ["b"], seed=1)
    assert torch.equal(alone[0], together[1])
    assert torch.equal(add_fixed_noise(images, ALL, ["a", "b", "c"], seed=1), together)
    assert not torch.equal(add_fixed_noise(images, ALL, ["a", "b", "c"], seed=2), together)
    assert not torch.equal(add_fixed_noise(images, ALL, ["x", "b", "c"], seed=1)[0], together[0])


def test_training_noise_comes_from_torch(monkeypatch):
    torch.manual_seed(5)
    first = add_noise(GREY, ALL)
    second = add_noise(GREY, ALL)
    torch.manual_seed(5)
    assert torch.equal(add_noise(GREY, ALL), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gaussian": -0.1}, "`gaussian` must be at least 0"),
        ({"salt_and_pepper": 1.5}, "`salt_and_pepper` must be"),
        ({"square": -1}, "`square` must be at least 0"),
    ],
)
def test_impossible_noise_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        PixelNoiseConfig(**settings)
