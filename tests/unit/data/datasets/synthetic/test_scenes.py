"""Scenes: drawn from seed and number alone, and all that is said of them can be seen."""

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
    sample_shape_scene,
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


def alone(shape, *, radius=0.3, angle=0.0, noise=0):
    obj = SceneObject(shape, "red", "large", 0.52, 0.47, radius, angle)
    return Scene(0, 0, ((obj,),), Background(40, noise))


def at(x, y):
    return (SceneObject("circle", "red", "small", x, y, 0.1),)


def parse(text):
    """Read a caption again: count, size, colour and shape of each group, and the relations."""
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


class TestThings:
    def test_same_seed_and_number_give_the_same_scene(self):
        assert sample_scene(3, 17) == SCENES[17]
        assert sample_scene(4, 17).objects != SCENES[17].objects

    def test_a_scene_of_long_ago_is_still_the_same(self):
        assert caption(sample_scene(0, 12)) == (
            "a large blue square is below a large orange square which is above a small red triangle"
        )
        assert render_scene(sample_scene(0, 12))[20, 33].tolist() == [247, 132, 28]

    def test_nothing_overlaps_or_leaves_the_canvas(self):
        for one in SCENES:
            boxes = [obj.box for obj in one.objects]
            assert all(min(box) > 0 and max(box) < 1 for box in boxes)
            masks = object_masks(one, size=128)
            assert masks.sum(0).max() == 1

    def test_there_are_one_to_four_things_of_every_kind(self):
        assert {len(one.objects) for one in SCENES} == {1, 2, 3, 4}
        kinds = {
            name for one in SCENES for t in one.objects for name in (t.shape, t.colour, t.size)
        }
        assert kinds == {*SHAPES, *COLOURS, *RADII}

    def test_small_and_large_can_be_told_apart(self):
        radii = {s: [t.radius for one in SCENES for t in one.objects if t.size == s] for s in RADII}
        assert 1.4 * max(radii["small"]) < min(radii["large"])

    @pytest.mark.parametrize(
        ("x", "y", "name"),
        [(0.9, 0.5, "left of"), (0.1, 0.6, "right of"), (0.5, 0.9, "above"), (0.6, 0.1, "below")],
    )
    def test_relation_is_that_of_the_first_to_the_second(self, x, y, name):
        assert relation(at(0.5, 0.5), at(x, y)) == name

    def test_relation_on_the_diagonal_is_not_clear(self):
        assert relation(at(0.5, 0.5), at(0.8, 0.8)) is None

    def test_relation_must_hold_for_all_of_a_group(self):
        assert relation((*at(0.2, 0.5), *at(0.6, 0.5)), at(0.5, 0.5)) is None

    def test_turned_shape_has_the_box_of_its_corners(self):
        (obj,) = alone("square", angle=math.pi / 4).objects
        assert obj.box == pytest.approx((0.22, 0.17, 0.82, 0.77))

    def test_negative_seed_is_refused(self):
        with pytest.raises(ConfigError, match="`seed` must be at least 0"):
            sample_scene(-1, 0)


class TestDrawing:
    @pytest.mark.parametrize("angle", [0.0, 0.4])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_area_drawn_is_the_area_of_the_outline(self, shape, angle):
        one = alone(shape, angle=angle)
        (obj,) = one.objects
        area = math.pi * obj.radius**2
        if obj.outline:
            closed = [*obj.outline, obj.outline[0]]
            area = abs(sum(a * d - b * c for (a, b), (c, d) in pairwise(closed))) / 2
        red = render_scene(one)[..., 0].astype(float)
        shares = (red - 40) / (COLOURS["red"][0] - 40)
        assert shares.mean() == pytest.approx(area, rel=0.015)
        assert cell_shares(one, grid=1).item() == pytest.approx(area, rel=0.05)

    def test_box_is_that_of_the_pixels(self):
        for one in SCENES[:40]:
            for obj, mask in zip(one.objects, object_masks(one, size=256), strict=True):
                rows, columns = np.nonzero(mask)
                seen = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
                assert np.array(seen) / 256 == pytest.approx(obj.box, abs=0.02)

    def test_pixels_of_a_mask_have_the_colour_of_the_thing(self):
        one = next(one for one in SCENES if len(one.objects) == 4)
        pixels = render_scene(one).astype(int)
        for obj, mask in zip(one.objects, object_masks(one), strict=True):
            away = np.abs(pixels[mask] - COLOURS[obj.colour]).max(-1)
            assert np.median(away) == 0

    def test_edges_are_smooth(self):
        red = render_scene(alone("circle"))[..., 0].astype(int)
        assert len(set(red.ravel().tolist())) > 8

    def test_plain_background_has_one_colour_and_noise_has_many(self):
        plain, noisy = render_scene(alone("square")), render_scene(alone("square", noise=30))
        assert len(np.unique(plain[:8].reshape(-1, 3), axis=0)) == 1
        assert len(np.unique(noisy[:8].reshape(-1, 3), axis=0)) > 100
        assert abs(noisy[:8].mean() - 40) < 3

    def test_many_at_once_are_those_drawn_alone(self):
        arguments = ["3/5", "1/9", "0/2"]
        together = render_numbered("scenes", arguments)
        assert together.shape == (3, 64, 64, 3)
        for argument, pixels in zip(arguments, together, strict=True):
            assert np.array_equal(np.asarray(render(f"scenes/{argument}")), pixels)

    def test_reference_is_opened_like_any_other_image(self):
        for name in ("scenes/3/5", "shapes/1/9"):
            assert np.array_equal(np.asarray(open_image(name)), np.asarray(render(name)))

    def test_labels_of_a_grid_are_read_off_the_masks(self):
        one = next(one for one in SCENES if len(one.objects) == 4)
        rows = cell_labels(one, grid=16).split()
        masks = object_masks(one)
        for row in range(16):
            for column in range(16):
                cell = masks[:, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4].mean((1, 2))
                expected = EMPTY
                if cell.sum() >= 0.5:
                    expected = LETTERS[one.objects[cell.argmax()].shape]
                assert rows[row][column] == expected

    def test_every_shape_has_a_letter_of_its_own(self):
        assert set(LETTERS) == set(SHAPES)
        assert len({EMPTY, *LETTERS.values()}) == 1 + len(SHAPES)


class TestCaptions:
    def test_caption_read_again_is_the_scene(self):
        for one in SCENES:
            groups, relations = parse(caption(one))
            assert groups == [(len(g), g[0].size, g[0].colour, g[0].shape) for g in one.groups]
            assert relations == one.relations
            assert all(relations)

    def test_order_is_large_first_and_then_from_the_left(self):
        for one in SCENES:
            keys = [(g[0].size == "small", sum(t.x for t in g) / len(g)) for g in one.groups]
            assert keys == sorted(keys)

    def test_words_name_the_things_they_describe(self):
        one = next(one for one in SCENES if len(one.groups) == 3)
        for word in caption_words(one):
            for obj in (one.objects[place] for place in word.object_indices):
                looks = {obj.size, obj.colour, obj.shape, f"{obj.shape}s", "crosses"}
                assert word.text in looks
        named = {place for word in caption_words(one) for place in word.object_indices}
        assert named == set(range(len(one.objects)))

    def test_regions_of_words_are_the_masks_of_their_things(self):
        one = find_scene("scenes/0/13")
        assert caption(one).startswith("a large green star is right of a small red circle")
        regions = word_regions("scenes/0/13", size=64)
        masks = object_masks(one)
        assert len(regions) == len(caption(one).split())
        assert regions[0] is None and regions[4] is None
        for word, obj in ((1, 0), (2, 0), (3, 0), (8, 1), (10, 1)):
            assert np.array_equal(regions[word], masks[obj])

    def test_phrases_single_out_one_thing(self):
        kinds = set()
        for one in SCENES:
            found = phrases(one)
            assert len({phrase.text for phrase in found}) == len(found)
            for phrase in found:
                obj = one.objects[phrase.object_index]
                *place, size, colour, shape = phrase.text.split()
                assert (size, colour, shape) == (obj.size, obj.colour, obj.shape)
                alike = [t for t in one.objects if (t.shape, t.colour) == (shape, colour)]
                first = {"left": "x", "right": "x", "upper": "y", "lower": "y"}
                if place:
                    axis = first[place[0]]
                    choose = min if place[0] in ("left", "upper") else max
                    assert choose(alike, key=lambda t, axis=axis: getattr(t, axis)) == obj
                else:
                    assert alike == [obj]
                kinds.add(phrase.kind)
        assert kinds == {"looks", "place"}

    def test_tags_tell_number_relations_and_background(self):
        assert tags(sample_scene(0, 1)) == ("3 objects", "left of", "counted", "noisy")
        assert tags(sample_scene(0, 11)) == ("1 object", "no relation", "noisy")


@pytest.fixture
def few_held_out(monkeypatch):
    monkeypatch.setattr(scenes, "NUM_HELD_OUT", 40)


@pytest.mark.usefixtures("few_held_out")
class TestLoading:
    def test_no_caption_is_in_two_parts(self):
        splits = load_scenes("400", 5)
        sides = [{e.target for e in side} for side in (splits.train, splits.valid, splits.test)]
        assert [len(side) for side in (splits.train, splits.valid, splits.test)] == [400, 40, 40]
        assert not sides[0] & sides[1] and not sides[0] & sides[2] and not sides[1] & sides[2]
        assert "400 train, 40 valid, 40 test" in splits.note

    def test_fewer_to_learn_from_leave_the_rest_as_it_is(self):
        few, more = load_scenes("300", 5), load_scenes("500", 5)
        assert few.train == more.train[:300]
        assert (few.valid, few.test) == (more.valid, more.test)

    def test_scenes_of_one_seed_are_the_same_whatever_is_asked_of_them(self):
        captioned, labelled = load_scenes("100", 0), load_scenes("regions,100", 0)
        assert [e.source for e in captioned.train] == [e.source for e in labelled.train]
        assert [len(row) for row in labelled.train[0].target.split()] == [16] * 16
        boxed = load_scenes("boxes,100", 0)
        own = {e.source for e in captioned.train}
        assert {e.source[1] for e in boxed.train} <= own
        assert {e.source[1] for e in boxed.test}.isdisjoint({e.source[1] for e in boxed.train})

    def test_box_of_a_phrase_is_that_of_its_thing(self):
        for example in load_scenes("boxes,100", 0).train[:20]:
            text, reference = example.source
            one = find_scene(reference)
            (phrase,) = (phrase for phrase in phrases(one) if phrase.text == text)
            edges = [float(edge) for edge in example.target.split()]
            assert edges == pytest.approx(one.objects[phrase.object_index].box, abs=6e-4)

    def test_shapes_have_their_shape_or_also_their_colour_as_label(self):
        plain, coloured = load_shapes("300", 0), load_shapes("colours,300", 0)
        assert {e.target for e in plain.train} == set(SHAPES)
        for one, other in zip(plain.train[:50], coloured.train, strict=False):
            (obj,) = find_scene(one.source).objects
            assert (one.target, other.target) == (obj.shape, f"{obj.colour} {obj.shape}")
        assert {e.source for e in plain.train}.isdisjoint({e.source for e in plain.test})

    def test_shape_keeps_within_the_canvas_however_it_is_turned(self):
        for number in range(100):
            (obj,) = sample_shape_scene(2, number).objects
            assert min(obj.box) > 0 and max(obj.box) < 1

    def test_data_sets_are_found_by_name(self):
        assert find_data("shapes:50").train == load_shapes("50", 0).train
        assert find_data("scenes:50", seed=2).valid == load_scenes("50", 2).valid

    @pytest.mark.parametrize("argument", ["0", "regions,", ",5", "boxes,x", "colours", "-3"])
    def test_other_argument_is_refused(self, argument):
        with pytest.raises(DataError, match=f"'scenes:' must be one of 'regions'.*'{argument}'"):
            load_scenes(argument, 0)

    @pytest.mark.parametrize("reference", ["scenes/1", "other/1/2", "scenes/1/-2", "scenes/1/2/3"])
    def test_other_reference_is_refused(self, reference):
        with pytest.raises(
            DataError, match=f"must have the form 'scenes/SEED/NUMBER'.*'{reference}'"
        ):
            find_scene(reference)


def test_german_names_the_colours_that_english_leaves_open():
    for one in SCENES:
        said, told = english_caption(one), german_caption(one)
        assert not {*said.split()} & {*COLOURS}
        hues = [GERMAN["colours"][group[0].colour] for group in one.groups]
        found = [
            h for word in told.split() for h in GERMAN["colours"].values() if word.startswith(h)
        ]
        assert found == hues


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
def test_german_is_declined(number, expected):
    assert german_caption(sample_scene(0, number)) == expected


def test_translations_with_and_without_picture_are_the_same_sentences():
    seen, unseen = (find_data(f"scenes:{name},50") for name in ("translation", "translation-text"))
    for side in ("train", "valid", "test"):
        pairs = zip(getattr(seen, side), getattr(unseen, side), strict=True)
        for one, other in pairs:
            assert (one.source[0], one.target) == (other.source, other.target)
            assert english_caption(find_scene(one.source[1])) == other.source
    held_out = {example.source for example in (*unseen.valid, *unseen.test)}
    assert not held_out & {example.source for example in unseen.train}
