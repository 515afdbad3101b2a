"""Scenes are determined by seed and number, and captions match the rendered objects."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic import scenes
from regard.data.datasets.synthetic.scenes import (
    find_scene,
    load_scenes,
    load_shapes,
    render,
    render_numbered,
    word_regions,
)
from regard.data.datasets.synthetic.scenes.captions import (
    GERMAN,
    caption,
    caption_words,
    english_caption,
    german_caption,
    phrases,
    tags,
)
from regard.data.datasets.synthetic.scenes.objects import (
    COLOURS,
    RADII,
    SHAPES,
    Background,
    Scene,
    SceneObject,
    relation,
    sample_scene,
    sample_shape,
)
from regard.data.datasets.synthetic.scenes.rendering import (
    EMPTY,
    LETTERS,
    cell_labels,
    cell_shares,
    object_masks,
    render_scene,
)
from regard.data.image.io import open_image

SCENES = [sample_scene(3, number) for number in range(200)]
NUMBERS = {"a": 1, "two": 2, "three": 3}


def single_shape(shape, *, radius=0.3, angle=0.0, noise=0):
    obj = SceneObject(shape, "red", "large", 0.52, 0.47, radius, angle)
    return Scene(0, 0, ((obj,),), Background(40, noise))


def at(x, y):
    return (SceneObject("circle", "red", "small", x, y, 0.1),)


def parse(text):
    """Parse a caption: count, size, colour and shape of each group, and the relations."""
    parts = re.split(r"(?: which)? (?:is|are) (left of|right of|above|below) ", text)
    groups = [part.split() for part in parts[::2]]
    return [
        (
            NUMBERS[number],
            size,
            colour,
            noun if number == "a" else re.sub(r"(?<=s)es$|s$", "", noun),
        )
        for number, size, colour, noun in groups
    ], tuple(parts[1::2])


class TestObjects:
    def test_scene_is_determined_by_seed_and_number(self):
        assert sample_scene(3, 17) == SCENES[17]
        assert sample_scene(4, 17).objects != SCENES[17].objects

    def test_scenes_do_not_change_between_versions(self):
        assert caption(sample_scene(0, 12)) == (
            "a large blue square is below a large orange square which is above a small red triangle"
        )
        assert render_scene(sample_scene(0, 12))[20, 33].tolist() == [247, 132, 28]

    def test_objects_do_not_overlap_or_leave_the_image(self):
        for scene in SCENES:
            boxes = [obj.box for obj in scene.objects]
            assert all(min(box) > 0 and max(box) < 1 for box in boxes)
            masks = object_masks(scene, size=128)
            assert masks.sum(0).max() == 1

    def test_scenes_have_one_to_four_objects_of_all_kinds(self):
        assert {len(scene.objects) for scene in SCENES} == {1, 2, 3, 4}
        kinds = {
            name for scene in SCENES for t in scene.objects for name in (t.shape, t.colour, t.size)
        }
        assert kinds == {*SHAPES, *COLOURS, *RADII}

    def test_small_and_large_objects_differ_clearly(self):
        radii = {
            s: [t.radius for scene in SCENES for t in scene.objects if t.size == s] for s in RADII
        }
        assert 1.4 * max(radii["small"]) < min(radii["large"])

    @pytest.mark.parametrize(
        ("x", "y", "name"),
        [(0.9, 0.5, "left of"), (0.1, 0.6, "right of"), (0.5, 0.9, "above"), (0.6, 0.1, "below")],
    )
    def test_relation_is_of_the_first_to_the_second_group(self, x, y, name):
        assert relation(at(0.5, 0.5), at(x, y)) == name

    def test_relation_on_the_diagonal_is_none(self):
        assert relation(at(0.5, 0.5), at(0.8, 0.8)) is None

    def test_relation_must_hold_for_all_objects_of_a_group(self):
        assert relation((*at(0.2, 0.5), *at(0.6, 0.5)), at(0.5, 0.5)) is None

    def test_box_of_rotated_shape_contains_its_corners(self):
        (obj,) = single_shape("square", angle=math.pi / 4).objects
        assert obj.box == pytest.approx((0.22, 0.17, 0.82, 0.77))

    def test_negative_seed_raises(self):
        with pytest.raises(ConfigError, match="`seed` must be at least 0"):
            sample_scene(-1, 0)


class TestRendering:
    @pytest.mark.parametrize("angle", [0.0, 0.4])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_rendered_area_is_the_area_of_the_outline(self, shape, angle):
        scene = single_shape(shape, angle=angle)
        (obj,) = scene.objects
        area = math.pi * obj.radius**2
        if obj.outline:
            closed = [*obj.outline, obj.outline[0]]
            area = abs(sum(a * d - b * c for (a, b), (c, d) in pairwise(closed))) / 2
        red = render_scene(scene)[..., 0].astype(float)
        shares = (red - 40) / (COLOURS["red"][0] - 40)
        assert shares.mean() == pytest.approx(area, rel=0.015)
        assert cell_shares(scene, grid=1).item() == pytest.approx(area, rel=0.05)

    def test_box_matches_rendered_pixels(self):
        for scene in SCENES[:40]:
            for obj, mask in zip(scene.objects, object_masks(scene, size=256), strict=True):
                rows, columns = np.nonzero(mask)
                edges = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
                assert np.array(edges) / 256 == pytest.approx(obj.box, abs=0.02)

    def test_pixels_of_a_mask_have_the_colour_of_the_object(self):
        scene = next(scene for scene in SCENES if len(scene.objects) == 4)
        pixels = render_scene(scene).astype(int)
        for obj, mask in zip(scene.objects, object_masks(scene), strict=True):
            difference = np.abs(pixels[mask] - COLOURS[obj.colour]).max(-1)
            assert np.median(difference) == 0

    def test_edges_are_antialiased(self):
        red = render_scene(single_shape("circle"))[..., 0].astype(int)
        assert len(set(red.ravel().tolist())) > 8

    def test_plain_background_has_one_colour_and_noise_has_many(self):
        plain, noisy = (
            render_scene(single_shape("square")),
            render_scene(single_shape("square", noise=30)),
        )
        assert len(np.unique(plain[:8].reshape(-1, 3), axis=0)) == 1
        assert len(np.unique(noisy[:8].reshape(-1, 3), axis=0)) > 100
        assert abs(noisy[:8].mean() - 40) < 3

    def test_batch_rendering_equals_single_rendering(self):
        arguments = ["3/5", "1/9", "0/2"]
        together = render_numbered("scenes", arguments)
        assert together.shape == (3, 64, 64, 3)
        for argument, pixels in zip(arguments, together, strict=True):
            assert np.array_equal(np.asarray(render(f"scenes/{argument}")), pixels)

    def test_reference_is_opened_as_image(self):
        for name in ("scenes/3/5", "shapes/1/9"):
            assert np.array_equal(np.asarray(open_image(name)), np.asarray(render(name)))

    def test_labels_of_grid_cells_match_the_masks(self):
        scene = next(scene for scene in SCENES if len(scene.objects) == 4)
        rows = cell_labels(scene, grid=16).split()
        masks = object_masks(scene)
        for row in range(16):
            for column in range(16):
                cell = masks[:, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4].mean((1, 2))
                expected = EMPTY
                if cell.sum() >= 0.5:
                    expected = LETTERS[scene.objects[cell.argmax()].shape]
                assert rows[row][column] == expected

    def test_every_shape_has_a_distinct_letter(self):
        assert set(LETTERS) == set(SHAPES)
        assert len({EMPTY, *LETTERS.values()}) == 1 + len(SHAPES)


class TestCaptions:
    def test_parsed_caption_equals_the_scene(self):
        for scene in SCENES:
            groups, relations = parse(caption(scene))
            assert groups == [(len(g), g[0].size, g[0].colour, g[0].shape) for g in scene.groups]
            assert relations == scene.relations
            assert all(relations)

    def test_captions_name_large_groups_first_then_from_the_left(self):
        for scene in SCENES:
            keys = [(g[0].size == "small", sum(t.x for t in g) / len(g)) for g in scene.groups]
            assert keys == sorted(keys)

    def test_words_have_the_indices_of_the_objects_they_describe(self):
        scene = next(scene for scene in SCENES if len(scene.groups) == 3)
        for word in caption_words(scene):
            for obj in (scene.objects[index] for index in word.object_indices):
                names = {obj.size, obj.colour, obj.shape, f"{obj.shape}s", "crosses"}
                assert word.text in names
        named = {index for word in caption_words(scene) for index in word.object_indices}
        assert named == set(range(len(scene.objects)))

    def test_regions_of_words_are_the_masks_of_their_objects(self):
        scene = find_scene("scenes/0/13")
        assert caption(scene).startswith("a large green star is right of a small red circle")
        regions = word_regions("scenes/0/13", size=64)
        masks = object_masks(scene)
        assert len(regions) == len(caption(scene).split())
        assert regions[0] is None and regions[4] is None
        for word, obj in ((1, 0), (2, 0), (3, 0), (8, 1), (10, 1)):
            assert np.array_equal(regions[word], masks[obj])

    def test_phrases_name_exactly_one_object(self):
        kinds = set()
        for scene in SCENES:
            names = phrases(scene)
            assert len({phrase.text for phrase in names}) == len(names)
            for phrase in names:
                obj = scene.objects[phrase.object_index]
                *position, size, colour, shape = phrase.text.split()
                assert (size, colour, shape) == (obj.size, obj.colour, obj.shape)
                alike = [t for t in scene.objects if (t.shape, t.colour) == (shape, colour)]
                axes = {"left": "x", "right": "x", "upper": "y", "lower": "y"}
                if position:
                    axis = axes[position[0]]
                    choose = min if position[0] in ("left", "upper") else max
                    assert choose(alike, key=lambda t, axis=axis: getattr(t, axis)) == obj
                else:
                    assert alike == [obj]
                kinds.add(phrase.kind)
        assert kinds == {"appearance", "position"}

    def test_tags_have_number_of_objects_relations_and_background(self):
        assert tags(sample_scene(0, 1)) == ("3 objects", "left of", "counted", "noisy")
        assert tags(sample_scene(0, 11)) == ("1 object", "no relation", "noisy")


@pytest.fixture
def few_held_out(monkeypatch):
    monkeypatch.setattr(scenes, "NUM_HELD_OUT", 40)


@pytest.mark.usefixtures("few_held_out")
class TestLoading:
    def test_splits_share_no_caption(self):
        splits = load_scenes("400", 5)
        parts = [{e.target for e in part} for part in (splits.train, splits.valid, splits.test)]
        assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [400, 40, 40]
        assert not parts[0] & parts[1] and not parts[0] & parts[2] and not parts[1] & parts[2]
        assert "400 train, 40 valid, 40 test" in splits.note

    def test_number_of_training_examples_does_not_change_held_out_splits(self):
        few, more = load_scenes("300", 5), load_scenes("500", 5)
        assert few.train == more.train[:300]
        assert (few.valid, few.test) == (more.valid, more.test)

    def test_all_kinds_use_the_same_scenes(self):
        captioned, labelled = load_scenes("100", 0), load_scenes("regions,100", 0)
        assert [e.source for e in captioned.train] == [e.source for e in labelled.train]
        assert [len(row) for row in labelled.train[0].target.split()] == [16] * 16
        boxed = load_scenes("boxes,100", 0)
        sources = {e.source for e in captioned.train}
        assert {e.source[1] for e in boxed.train} <= sources
        assert {e.source[1] for e in boxed.test}.isdisjoint({e.source[1] for e in boxed.train})

    def test_box_of_a_phrase_is_the_box_of_its_object(self):
        for example in load_scenes("boxes,100", 0).train[:20]:
            text, reference = example.source
            scene = find_scene(reference)
            (phrase,) = (phrase for phrase in phrases(scene) if phrase.text == text)
            edges = [float(edge) for edge in example.target.split()]
            assert edges == pytest.approx(scene.objects[phrase.object_index].box, abs=6e-4)

    def test_labels_of_shapes_are_shape_or_colour_and_shape(self):
        plain, coloured = load_shapes("300", 0), load_shapes("colours,300", 0)
        assert {e.target for e in plain.train} == set(SHAPES)
        for shape, colour_and_shape in zip(plain.train[:50], coloured.train, strict=False):
            (obj,) = find_scene(shape.source).objects
            assert shape.target == obj.shape
            assert colour_and_shape.target == f"{obj.colour} {obj.shape}"
        assert {e.source for e in plain.train}.isdisjoint({e.source for e in plain.test})

    def test_rotated_shapes_stay_inside_the_image(self):
        for number in range(100):
            (obj,) = sample_shape(2, number).objects
            assert min(obj.box) > 0 and max(obj.box) < 1

    def test_data_sets_are_loaded_by_name(self):
        assert find_data("shapes:50").train == load_shapes("50", 0).train
        assert find_data("scenes:50", seed=2).valid == load_scenes("50", 2).valid

    @pytest.mark.parametrize("argument", ["0", "regions,", ",5", "boxes,x", "colours", "-3"])
    def test_invalid_argument_raises(self, argument):
        with pytest.raises(DataError, match=f"'scenes:' must be one of 'regions'.*'{argument}'"):
            load_scenes(argument, 0)

    @pytest.mark.parametrize("reference", ["scenes/1", "other/1/2", "scenes/1/-2", "scenes/1/2/3"])
    def test_invalid_reference_raises(self, reference):
        with pytest.raises(
            DataError, match=f"must have the form 'scenes/SEED/NUMBER'.*'{reference}'"
        ):
            find_scene(reference)


def test_german_captions_have_colours_and_english_ones_have_none():
    for scene in SCENES:
        english, german = english_caption(scene), german_caption(scene)
        assert not {*english.split()} & {*COLOURS}
        expected = [GERMAN["colours"][group[0].colour] for group in scene.groups]
        colours = [
            colour
            for word in german.split()
            for colour in GERMAN["colours"].values()
            if word.startswith(colour)
        ]
        assert colours == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (4, "zwei kleine rote Quadrate"),
        (1, "ein kleiner roter Kreis ist links von zwei kleinen blauen Quadraten"),
        (
            2,
            "ein großer gelber Kreis ist links von einem großen violetten Kreis , der unter zwei "
            "kleinen grünen Kreuzen ist",
        ),
    ],
)
def test_german_captions_are_declined(number, expected):
    assert german_caption(sample_scene(0, number)) == expected


def test_translations_with_and_without_images_have_the_same_sentences():
    with_images, text_only = (
        find_data(f"scenes:{name},50") for name in ("translation", "translation-text")
    )
    for part in ("train", "valid", "test"):
        pairs = zip(getattr(with_images, part), getattr(text_only, part), strict=True)
        for multimodal, text in pairs:
            assert (multimodal.source[0], multimodal.target) == (text.source, text.target)
            assert english_caption(find_scene(multimodal.source[1])) == text.source
    held_out = {example.source for example in (*text_only.valid, *text_only.test)}
    assert not held_out & {example.source for example in text_only.train}


def test_pairs_are_a_large_and_a_small_object_in_two_cells_of_a_row_or_column():
    relations = set()
    for number in range(60):
        scene = find_scene(f"pairs/0/{number}")
        large, small = scene.objects
        assert (large.size, small.size) == ("large", "small")
        first, second = ((int(3 * obj.y), int(3 * obj.x)) for obj in scene.objects)
        assert first != second and (first[0] == second[0] or first[1] == second[1])
        relations.update(scene.relations)
    assert relations == {"left of", "right of", "above", "below"}


def test_pairs_are_loaded_with_references_and_captions():
    example = load_scenes("pairs,20", 0).train[0]
    scene = find_scene(example.source)
    assert example.source.startswith("pairs/0/") and example.target == caption(scene)
    assert render(example.source).size == (64, 64)
