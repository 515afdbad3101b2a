"""Questions about scenes: what is right can be told from the scene, and not from the question."""

import re
from collections import Counter

import pytest

from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.scenes import find_scene
from regard.data.datasets.synthetic.scenes.objects import (
    COLOURS,
    SHAPES,
    Background,
    Scene,
    SceneObject,
    relation,
    sample_scene,
)
from regard.data.datasets.synthetic.scenes.questions import (
    KINDS,
    Attributes,
    question_only_accuracy,
    sample_questions,
)
from regard.data.example import Example

SCENES = [sample_scene(5, number) for number in range(400)]
ASKED = [(found, question) for found in SCENES for question in sample_questions(found)]

RED_CIRCLE = SceneObject("circle", "red", "large", 0.2, 0.5, 0.17)
BLUE_STAR = SceneObject("star", "blue", "small", 0.5, 0.5, 0.1)
RED_CROSS = SceneObject("cross", "red", "small", 0.8, 0.5, 0.1)
SCENE = Scene(0, 0, ((RED_CIRCLE,), (BLUE_STAR,), (RED_CROSS,)), Background(40, 0))

SIZE, HUE, NOUN = "(small |large )?", f"((?:{'|'.join(COLOURS)}) )?", "([a-z]+)"
LOOK = SIZE + HUE + NOUN
SIDE = "(left of|right of|above|below)"


def look_of(size, colour, noun):
    """Read again what objects are called."""
    noun = re.sub(r"(?<=s)es$|(?<!s)s$", "", noun)
    return Attributes((size or "").strip(), (colour or "").strip(), "" if noun == "shape" else noun)


def fitting(objects, *words):
    return [obj for obj in objects if look_of(*words).matches(obj)]


def asked(found, kind):
    return dict(KINDS[kind][0](found))


def of_kind(kind):
    return [(found, question) for found, question in ASKED if question.kind == kind]


def test_they_hang_on_the_scene_alone():
    assert [sample_questions(found) for found in SCENES[:20]] == [
        sample_questions(sample_scene(5, number)) for number in range(20)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_asked_once_a_scene_at_most(kind):
    counted = Counter(found.number for found, _ in of_kind(kind))
    assert max(counted.values()) == 1 and len(counted) > 40


def test_counts_are_right():
    for found, question in of_kind("count"):
        words = re.fullmatch(f"how many {LOOK} are there", question.text).groups()
        assert question.answer == str(len(fitting(found.objects, *words)))


def test_what_exists_is_right():
    for found, question in of_kind("exists"):
        words = re.fullmatch(f"is there (?:a|an(?= o)) {LOOK}", question.text).groups()
        assert "a orange" not in question.text
        assert question.answer == ("yes" if fitting(found.objects, *words) else "no")


def test_comparisons_are_right():
    for found, question in of_kind("compare"):
        words = re.fullmatch(f"are there more {LOOK} than {LOOK}", question.text).groups()
        first, second = (len(fitting(found.objects, *part)) for part in (words[:3], words[3:]))
        assert question.answer == ("yes" if first > second else "no")


def test_equal_colours_are_right():
    for found, question in of_kind("same"):
        text = f"is there anything of the same colour as the {LOOK}"
        (obj,) = fitting(found.objects, *re.fullmatch(text, question.text).groups())
        others = [other.colour for other in found.objects if other is not obj]
        assert question.answer == ("yes" if obj.colour in others else "no")


def test_places_are_right():
    for found, question in of_kind("place"):
        words = re.fullmatch(f"is the {LOOK} {SIDE} the {LOOK}", question.text).groups()
        (one,), (other,) = (fitting(found.objects, *part) for part in (words[:3], words[4:]))
        assert question.answer == ("yes" if relation((one,), (other,)) == words[3] else "no")


def test_attributes_are_of_the_only_thing_that_is_called_so():
    for found, question in of_kind("attribute"):
        wanted, *words = re.fullmatch(f"what( colour)? is the {LOOK}", question.text).groups()
        (obj,) = fitting(found.objects, *words)
        assert question.answer == (obj.colour if wanted else obj.shape)


def test_relations_single_out_one_thing_of_several():
    text = f"what( colour)? is the {LOOK} {SIDE} the {LOOK}"
    for found, question in of_kind("relation"):
        wanted, *words = re.fullmatch(text, question.text).groups()
        (other,) = fitting(found.objects, *words[4:])
        rest = [obj for obj in found.objects if obj is not other]
        candidates = fitting(rest, *words[:3])
        (obj,) = [one for one in candidates if relation((one,), (other,)) == words[3]]
        assert len(candidates) > 1
        assert question.answer == (obj.colour if wanted else obj.shape)


def test_a_scene_by_hand():
    assert asked(SCENE, "count")["how many red shapes are there"] == "2"
    assert asked(SCENE, "count")["how many crosses are there"] == "1"
    assert asked(SCENE, "compare")["are there more red shapes than blue shapes"] == "yes"
    assert asked(SCENE, "compare")["are there more circles than stars"] == "no"
    same = asked(SCENE, "same")
    assert same["is there anything of the same colour as the cross"] == "yes"
    assert same["is there anything of the same colour as the star"] == "no"
    assert asked(SCENE, "place")["is the circle left of the star"] == "yes"
    assert asked(SCENE, "place")["is the circle above the star"] == "no"
    relations = asked(SCENE, "relation")
    assert relations["what is the shape right of the star"] == "cross"
    assert relations["what is the red shape left of the star"] == "circle"
    assert not [text for text in relations if "above" in text]


@pytest.mark.parametrize("kind", ["exists", "compare", "same", "place"])
def test_yes_is_as_frequent_as_no(kind):
    answers = Counter(question.answer for _, question in of_kind(kind))
    assert 0.35 < answers["yes"] / answers.total() < 0.65


def test_all_colours_and_shapes_are_answers():
    names = {question.answer for _, question in of_kind("attribute")}
    assert names == {*COLOURS, *SHAPES}


def test_a_guess_is_the_most_frequent_answer_of_the_question():
    train = [Example(("a", "1"), "yes"), Example(("a", "2"), "yes"), Example(("b", "1"), "no")]
    test = [Example(("a", "3"), "yes"), Example(("b", "3"), "yes"), Example(("c", "3"), "yes")]
    assert question_only_accuracy(train, test) == pytest.approx(200 / 3)


def test_the_data_set_tells_how_much_is_guessed():
    splits = find_data("scenes:questions,300")
    guessed = float(re.search(r"([\d.]+) % accuracy from the question", splits.note)[1])
    assert guessed == pytest.approx(question_only_accuracy(splits.train, splits.test), abs=0.05)
    assert guessed < 50
    assert [len(side) for side in (splits.train, splits.valid, splits.test)] == [300, 500, 500]
    scenes_of = [{e.source[1] for e in side} for side in (splits.train, splits.valid, splits.test)]
    assert not scenes_of[0] & (scenes_of[1] | scenes_of[2])
    example = splits.train[0]
    right = {
        question.text: question for question in sample_questions(find_scene(example.source[1]))
    }
    assert example.target == right[example.source[0]].answer
    assert example.tags == (right[example.source[0]].kind,)
