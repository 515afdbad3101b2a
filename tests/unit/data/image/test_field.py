import numpy as np
import pytest
import torch
from PIL import Image

from regard.core.errors import ConfigError, DataError
from regard.data.decoding import keep_readable
from regard.data.example import Example
from regard.data.image.augment import AugmentationConfig
from regard.data.image.field import ImageConfig, ImageField


@pytest.fixture
def references(tmp_path):
    """Twelve images of noise, each with another mean."""
    generator = np.random.default_rng(0)
    paths = [str(tmp_path / f"{number}.png") for number in range(12)]
    for number, path in enumerate(paths):
        noise = generator.integers(0, 100 + 10 * number, (8, 8, 3))
        Image.fromarray(noise.astype(np.uint8)).save(path)
    return paths


def field_of(size=8, **settings):
    return ImageField(ImageConfig(size=size, **settings), (0.4, 0.5, 0.6), (0.1, 0.2, 0.3))


def test_fitted_mean_and_std_are_those_of_all_pixels(references):
    field = ImageField.fit(ImageConfig(size=8), references)
    pixels = np.concatenate(field.read_all(references)) / 255
    assert np.allclose(field.mean, pixels.mean((0, 2, 3)), atol=1e-6)
    assert np.allclose(field.std, pixels.std((0, 2, 3)), atol=1e-6)


def test_finished_images_are_standardised(references):
    field = ImageField.fit(ImageConfig(size=8), references)
    values, _ = field.stack(field.read_all(references))
    finished = field.finish(values, is_training=False)
    assert finished.dtype == torch.float32
    assert torch.allclose(finished.mean((0, 2, 3)), torch.zeros(3), atol=1e-4)
    assert torch.allclose(finished.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-4)


def test_std_of_constant_images_has_a_minimum(tmp_path):
    Image.new("L", (8, 8), 255).save(tmp_path / "white.png")
    field = ImageField.fit(ImageConfig(size=8, channels=1), [str(tmp_path / "white.png")])
    assert field.mean == (1.0,) and field.std == (0.01,)


def test_items_count_as_one_position_and_share_one_array(references):
    items = field_of().read_all([references[3], references[0], references[3]])
    assert [item.shape for item in items] == [(1, 3, 8, 8)] * 3
    assert all(len(item) == 1 for item in items)
    assert np.shares_memory(items[0], items[2])
    assert (items[1][0] == np.asarray(Image.open(references[0])).transpose(2, 0, 1)).all()


def test_batched_equals_single(references):
    field = field_of()
    items = field.read_all(references)
    values, mask = field.stack(items)
    assert values.shape == (12, *field.spec.shape) and values.dtype == torch.uint8
    assert mask.shape == (12, 1) and mask.dtype == torch.bool and mask.all()
    together = field.finish(values, is_training=False)
    alone = [field.finish(field.stack([item])[0], is_training=False) for item in items]
    assert torch.equal(together, torch.cat(alone))


def test_only_training_augments(references):
    field = field_of(augmentation=AugmentationConfig(crop=2, colour=0.3))
    values, _ = field.stack(field.read_all(references))
    plain = field.finish(values, is_training=False)
    assert torch.equal(plain, field_of().finish(values, is_training=True))
    torch.manual_seed(0)
    first = field.finish(values, is_training=True)
    torch.manual_seed(0)
    assert torch.equal(first, field.finish(values, is_training=True))
    assert not torch.equal(first, plain)


def test_saved_field_is_the_same(tmp_path, references):
    field = ImageField.fit(
        ImageConfig(size=6, channels=1, fit="pad", augmentation=AugmentationConfig(flip=True)),
        references,
    )
    field.save(tmp_path, "source")
    loaded = ImageField.load(tmp_path)
    assert (loaded.config, loaded.mean, loaded.std) == (field.config, field.mean, field.std)


def test_shortening_leaves_an_image_unchanged(references):
    field = field_of()
    item = field.read_all(references[:1])[0]
    assert field.shorten(item, 0) is item


def test_bad_image_is_named(references, tmp_path):
    with pytest.raises(DataError, match=r"none.png does not exist"):
        field_of().read_all([*references, str(tmp_path / "none.png")])


def test_fitting_without_images_is_refused():
    with pytest.raises(DataError, match="There is no image to learn from"):
        ImageField.fit(ImageConfig(), [])


def test_examples_with_bad_images_are_dropped_and_counted_in_one_line(references, tmp_path, caplog):
    (tmp_path / "bad.png").write_bytes(b"bad")
    bad = [str(tmp_path / "bad.png"), str(tmp_path / "bad.png"), str(tmp_path / "none.png")]
    examples = [Example(path, "x") for path in (references[0], *bad, references[1])]
    assert keep_readable(examples, ImageConfig().decoder) == [examples[0], examples[-1]]
    (record,) = caplog.records
    assert "skipped 3 of 5 examples whose image cannot be read (first: " in record.message
    assert "bad.png is not an image" in record.message


def test_readable_examples_are_kept_without_a_warning(references, caplog):
    examples = [Example(path, "x") for path in references]
    assert keep_readable(examples, ImageConfig().decoder) == examples
    assert not caplog.records


def test_no_readable_image_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"No image can be read. First: .*none.png does not exist"):
        keep_readable([Example(str(tmp_path / "none.png"))], ImageConfig().decoder)


@pytest.mark.parametrize("name", ["crop", "cutout"])
def test_augmentation_must_be_smaller_than_the_image(name):
    with pytest.raises(ConfigError, match=rf"`augmentation.{name}` must be smaller than `size`"):
        ImageConfig(size=4, augmentation=AugmentationConfig(**{name: 4}))


def test_statistics_must_match_the_number_of_channels():
    with pytest.raises(ConfigError, match=r"must have `channels` \(1\) values each"):
        ImageField(ImageConfig(channels=1), (0.5, 0.5, 0.5), (1, 1, 1))


def test_sizes_are_positive():
    with pytest.raises(ConfigError, match="`size` must be between 1 and 4096"):
        ImageConfig(size=0)
    with pytest.raises(ConfigError, match="`max_pixels` must be between 1 and 1073741824"):
        ImageConfig(max_pixels=0)
