import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.image.augment import AugmentationConfig, augment, augment_pairs


@pytest.fixture
def images():
    """Four images in which every pixel has a value of its own."""
    torch.manual_seed(0)
    return torch.linspace(0, 1, 4 * 3 * 6 * 5).view(4, 3, 6, 5)


def augmented(images, seed=0, **settings):
    torch.manual_seed(seed)
    return augment(images, AugmentationConfig(**settings))


ALL = {"crop": 2, "zoom": 0.5, "flip": True, "colour": 0.4, "cutout": 3}


def test_without_settings_nothing_happens_and_nothing_is_drawn(images):
    state = torch.get_rng_state()
    assert augment(images, AugmentationConfig()) is images
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("channels", [1, 3])
def test_shape_and_range_stay(images, channels):
    found = augmented(images[:, :channels], **ALL)
    assert found.shape == (4, channels, 6, 5)
    assert 0 <= found.min() and found.max() <= 1


def test_same_state_of_the_generator_gives_the_same_images(images):
    assert torch.equal(augmented(images, 3, **ALL), augmented(images, 3, **ALL))
    assert not torch.equal(augmented(images, 3, **ALL), augmented(images, 4, **ALL))


@pytest.mark.parametrize("name", ALL)
def test_each_image_is_augmented_independently(images, name):
    same = images[:1].expand(64, -1, -1, -1)
    found = augmented(same, **{name: ALL[name]})
    assert len(found.flatten(1).unique(dim=0)) > 1


def test_every_crop_is_a_window_of_the_padded_image(images):
    found = augmented(images, crop=2)
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2), mode="reflect")
    for number, image in enumerate(found):
        windows = padded[number].unfold(1, 6, 1).unfold(2, 5, 1)  # (C, 5, 5, Y, X)
        assert (windows == image[:, None, None]).all(-1).all(-1).all(0).sum() == 1


def test_every_offset_is_sampled():
    row = torch.arange(5.0).view(1, 1, 1, 5).expand(500, 1, 5, 5) / 4
    found = augmented(row, crop=1)
    assert {tuple(image[0, 0].tolist()) for image in found} == {
        (0.25, 0.0, 0.25, 0.5, 0.75),
        (0.0, 0.25, 0.5, 0.75, 1.0),
        (0.25, 0.5, 0.75, 1.0, 0.75),
    }


def test_about_half_of_the_images_are_flipped(images):
    many = images[:1].expand(400, -1, -1, -1)
    found = augmented(many, flip=True)
    is_mirrored = (found == many.flip(-1)).flatten(1).all(1)
    is_same = (found == many).flatten(1).all(1)
    assert (is_mirrored ^ is_same).all()
    assert 140 < is_mirrored.sum() < 260


def test_colour_leaves_grey_images_grey(images):
    grey = images[:, :1].expand(-1, 3, -1, -1)
    found = augmented(grey, colour=0.5)
    assert torch.allclose(found, found[:, :1].expand_as(found), atol=1e-6)
    assert not torch.allclose(found, grey)


def test_one_channel_and_three_equal_channels_change_equally(images):
    one = augmented(images[:, :1], colour=0.5)
    three = augmented(images[:, :1].expand(-1, 3, -1, -1), colour=0.5)
    assert torch.allclose(one.expand_as(three), three, atol=1e-6)


def test_cutout_fills_one_square_with_the_mean():
    image = torch.rand(300, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    found = augmented(image, cutout=3)
    changed = (found != image).all(1)  # (B, Y, X)
    rows, columns = changed.any(2).sum(1), changed.any(1).sum(1)
    assert torch.equal(changed.flatten(1).sum(1), rows * columns)
    # Squares reach over the edge, where they are smaller.
    assert set(rows.tolist()) == set(columns.tolist()) == {2, 3}
    mean = image.mean((2, 3), keepdim=True).expand_as(image)
    mask = changed[:, None].expand_as(image)
    assert torch.equal(found[mask], mean[mask])


@pytest.mark.parametrize(
    ("settings", "claim"),
    [
        ({"crop": -1}, "`crop` must be at least 0"),
        ({"colour": 1.5}, "`colour` must be between"),
        ({"cutout": -1}, "`cutout` must be at least 0"),
    ],
)
def test_settings_have_limits(settings, claim):
    with pytest.raises(ConfigError, match=claim):
        AugmentationConfig(**settings)


def test_a_zoomed_image_is_a_resized_crop():
    ramp = torch.linspace(0, 1, 33).expand(200, 1, 33, 33)
    found = augmented(ramp, zoom=0.5)
    sides = found[:, 0, :, -1] - found[:, 0, :, 0]
    assert (sides > 0.45).all() and (sides <= 1).all()
    assert sides[:, 0].min() < 0.6 and sides[:, 0].max() > 0.9
    assert found[:, 0, 0, 0].max() > 0.3, "parts lie anywhere"
    torch.testing.assert_close(found[:, :, 0], found[:, :, -1])
    steps = found[..., 2:-1] - found[..., 1:-2]  # at the edge there is nothing beyond to mix in
    torch.testing.assert_close(steps, steps[..., :1].expand_as(steps))


@pytest.mark.parametrize("settings", [{"crop": 2}, {"flip": True}, {"crop": 3, "flip": True}])
def test_source_and_target_are_moved_equally(images, settings):
    config = AugmentationConfig(**settings)
    torch.manual_seed(1)
    sources, targets = augment_pairs(images, 1 - images[:, :1], config)
    torch.testing.assert_close(targets, 1 - sources[:, :1])
    torch.manual_seed(1)
    assert torch.equal(sources, augment(images, config)), "as alone"
    assert not torch.equal(sources, images)


def test_only_the_source_changes_colour_or_loses_a_square(images):
    sources, targets = augment_pairs(images, images, AugmentationConfig(colour=0.5, cutout=3))
    assert torch.equal(targets, images)
    assert not torch.equal(sources, images)


def test_a_larger_target_is_flipped_with_its_source(images):
    larger = images.repeat_interleave(2, 2).repeat_interleave(2, 3)
    sources, targets = augment_pairs(images, larger, AugmentationConfig(flip=True))
    assert torch.equal(targets[:, :, ::2, ::2], sources)
