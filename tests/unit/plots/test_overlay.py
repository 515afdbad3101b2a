import numpy as np
import pytest
from matplotlib import colormaps
from PIL import Image, ImageDraw

from regard.core.errors import ConfigError, DataError
from regard.plots.inputs import MAX_SIDE, resize_image
from regard.plots.overlay import (
    BLENDS,
    CLASSES,
    image_attention,
    mask_overlay,
    overlay,
    segmentation,
    video_attention,
)

WHITE = np.full((60, 80, 3), 255, np.uint8)


@pytest.fixture
def scene():
    """Return an image of a red disc on the left and a blue disc on the right on green."""
    image = Image.new("RGB", (96, 72), (90, 160, 70))
    draw = ImageDraw.Draw(image)
    draw.ellipse((8, 20, 40, 52), fill=(200, 40, 40))
    draw.ellipse((56, 20, 88, 52), fill=(40, 60, 200))
    return np.asarray(image)


def one_cell(row, column, shape=(3, 4)):
    grid = np.zeros(shape)
    grid[row, column] = 0.3
    return grid


def test_uniform_weights_leave_the_image_unchanged(scene):
    assert (overlay(scene, np.full((7, 7), 0.02)) == resize_image(scene)).all()


def test_zero_weights_darken_the_image(scene):
    assert overlay(scene, np.zeros((7, 7))).mean() < 0.25 * scene.mean()


@pytest.mark.parametrize("row", range(3))
@pytest.mark.parametrize("column", range(4))
def test_largest_weight_is_brightest(row, column):
    light = overlay(WHITE, one_cell(row, column)).astype(float).sum(-1)
    height, width = light.shape
    cells = light.reshape(3, height // 3, 4, width // 4).mean((1, 3))
    assert np.unravel_index(cells.argmax(), cells.shape) == (row, column)
    middle = light[height // 6 :: height // 3, width // 8 :: width // 4]
    assert middle[row, column] > 3 * np.delete(middle.ravel(), row * 4 + column).max()


def test_regions_of_high_weight_keep_their_colour(scene):
    found = overlay(scene, [[1.0, 0.0]])
    height, width = found.shape[:2]
    assert found[height // 2, width // 8].tolist() == pytest.approx([200, 40, 40], abs=3)
    dark = found[height // 2, -width // 8]
    assert dark.max() < 70


@pytest.mark.parametrize("blend", BLENDS)
def test_overlay_depends_on_relative_weights_only(blend, scene):
    grid = np.random.default_rng(0).random((4, 5))
    assert (overlay(scene, grid, blend=blend) == overlay(scene, 10 * grid, blend=blend)).all()


@pytest.mark.parametrize("blend", BLENDS)
def test_weights_are_interpolated(blend):
    found = overlay(WHITE, one_cell(1, 1), blend=blend).astype(int)
    assert abs(np.diff(found, axis=0)).max() < 16 and abs(np.diff(found, axis=1)).max() < 16


def test_heat_blends_a_colour_map_with_grey():
    found = overlay(WHITE, np.array([[1.0, 0.0]]), blend="heat")
    for position, strength in ((0, 1.0), (-1, 0.0)):
        opacity = 0.25 + 0.45 * strength
        colour = 255 * np.array(colormaps["inferno"](strength)[:3])
        wanted = (1 - opacity) * 255 + opacity * colour
        assert found[20, position].tolist() == pytest.approx(wanted.tolist(), abs=1)


def test_unknown_blend_is_refused(scene):
    with pytest.raises(ConfigError, match="`blend` must be one of 'light', 'heat', but is 'hot'"):
        overlay(scene, [[1.0]], blend="hot")


@pytest.mark.parametrize("weights", [[1.0], np.zeros((0, 2)), np.zeros((1, 2, 2))])
def test_weights_without_a_grid_are_refused(weights, scene):
    with pytest.raises(DataError, match="`weights` must be a grid of rows and columns, but has"):
        overlay(scene, weights)


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_negative_and_non_finite_weights_are_refused(value, scene):
    with pytest.raises(DataError, match="`weights` must be finite and non-negative"):
        overlay(scene, [[0.5, value]])


def test_image_attention_has_the_image_and_a_tile_per_word(scene):
    grids = np.random.default_rng(0).random((3, 4, 5))
    first, *others = image_attention(scene, ["a", "red", "ball"], grids)
    assert (first.image == resize_image(scene)).all() and first.caption == ""
    assert [tile.caption for tile in others] == ["a", "red", "ball"]
    for tile, grid in zip(others, grids, strict=True):
        assert (tile.image == overlay(scene, grid)).all()
        assert tile.note == f"max {grid.max():.2f}"


def test_image_attention_with_words_of_another_length_is_refused(scene):
    with pytest.raises(DataError, match=r"a grid for each of 2 words, but has the shape \(3, 4, 5"):
        image_attention(scene, ["a", "b"], np.ones((3, 4, 5)))


def test_mask_overlay_has_the_colours_of_the_classes():
    found = mask_overlay(np.zeros((8, 8), np.uint8), np.array([[0, 1], [2, 3]]))
    quarters = (
        found[MAX_SIDE // 4 :: MAX_SIDE // 2, MAX_SIDE // 4 :: MAX_SIDE // 2]
        .reshape(-1, 3)
        .tolist()
    )
    colours = [bytes.fromhex(colour[1:]) for colour in CLASSES[:3]]
    wanted = [[0, 0, 0], *([round(0.7 * value) for value in colour] for colour in colours)]
    assert quarters == [pytest.approx(colour, abs=1) for colour in wanted]


def test_class_0_is_grey(scene):
    found = mask_overlay(scene, np.zeros((4, 4), int))
    assert (found == found[..., :1]).all()
    assert found.std() > 5


def test_class_colours_repeat(scene):
    one, again = (np.full((2, 2), number) for number in (1, 1 + len(CLASSES)))
    assert (mask_overlay(scene, one) == mask_overlay(scene, again)).all()


@pytest.mark.parametrize("mask", [np.ones((2, 2)), np.ones(4, int), np.ones((0, 3), int)])
def test_invalid_masks_are_refused(mask, scene):
    with pytest.raises(DataError, match="`mask` must hold a class index for each row"):
        mask_overlay(scene, mask)


def test_segmentation_shows_the_target_if_given(scene):
    mask = np.array([[0, 1], [2, 0]])
    assert [tile.caption for tile in segmentation(scene, mask)] == ["image", "predicted"]
    tiles = segmentation(scene, mask, mask.T)
    assert [tile.caption for tile in tiles] == ["image", "predicted", "target"]
    assert (tiles[2].image == mask_overlay(scene, mask.T)).all()


def test_video_attention_has_one_scale_per_word(scene):
    frames = np.stack([scene, scene // 2, scene // 3])
    weights = np.zeros((2, 3, 3, 4))
    weights[0, 0, 1, 1], weights[0, 2, 1, 1] = 0.75, 0.25
    weights[1] = 1 / 36
    tiles = video_attention(frames, ["hits", "ball"], weights)
    assert [tile.note for tile in tiles[:3]] == ["frame 1", "frame 2", "frame 3"]
    assert [tile.caption for tile in tiles[3:]] == ["hits"] * 3 + ["ball"] * 3
    assert [tile.note for tile in tiles[3:]] == ["75%", "0%", "25%", "33%", "33%", "33%"]
    assert (tiles[3].image == overlay(scene, weights[0, 0])).all()
    # The second frame has no weight, the last a third of the weight of the first.
    assert tiles[4].image.mean() < 0.25 * tiles[1].image.mean()
    assert (tiles[5].image == overlay(frames[2], weights[0, 2], vmax=0.75)).all()
    for plain, shown in zip(tiles[:3], tiles[6:], strict=True):
        assert (plain.image == shown.image).all()


@pytest.mark.parametrize("shape", [(2, 4, 3, 3), (1, 3, 3, 3), (2, 3, 3)])
def test_video_attention_of_another_shape_is_refused(scene, shape):
    with pytest.raises(DataError, match="each of 3 frames and each of 2 words"):
        video_attention(np.stack([scene] * 3), ["a", "b"], np.zeros(shape))
