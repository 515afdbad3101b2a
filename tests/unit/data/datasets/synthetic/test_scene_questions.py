"""Questions about scenes: answers are correct and cannot be predicted from the question."""

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
QUESTIONS = [(scene, question) for scene in SCENES for question in sample_questions(scene)]

RED_CIRCLE = SceneObject("circle", "red", "large", 0.2, 0.5, 0.17)
BLUE_STAR = SceneObject("star", "blue", "small", 0.5, 0.5, 0.1)
RED_CROSS = SceneObject("cross", "red", "small", 0.8, 0.5, 0.1)
SCENE = Scene(0, 0, ((RED_CIRCLE,), (BLUE_STAR,), (RED_CROSS,)), Background(40, 0))

SIZE, COLOUR, NOUN = "(small |large )?", f"((?:{'|'.join(COLOURS)}) )?", "([a-z]+)"
WORDS = SIZE + COLOUR + NOUN
SIDE = "(left of|right of|above|below)"


def parse_attributes(size, colour, noun):
    """Parse the words for an object."""
    noun = re.sub(r"(?<=s)es$|(?<!s)s$", "", noun)
    return Attributes((size or "").strip(), (colour or "").strip(), "" if noun == "shape" else noun)


def matching(objects, *words):
    return [obj for obj in objects if parse_attributes(*words).matches(obj)]


def candidates(scene, kind):
    return dict(KINDS[kind][0](scene))


def of_kind(kind):
    return [(scene, question) for scene, question in QUESTIONS if question.kind == kind]


def test_questions_depend_on_the_scene_only():
    assert [sample_questions(scene) for scene in SCENES[:20]] == [
        sample_questions(sample_scene(5, number)) for number in range(20)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_scene_has_at_most_one_question_per_kind(kind):
    counted = Counter(scene.number for scene, _ in of_kind(kind))
    assert max(counted.values()) == 1 and len(counted) > 40


def test_count_answers_are_correct():
    for scene, question in of_kind("count"):
        words = re.fullmatch(f"how many {WORDS} are there", question.text).groups()
        assert question.answer == str(len(matching(scene.objects, *words)))


def test_existence_answers_are_correct():
    for scene, question in of_kind("exists"):
        words = re.fullmatch(f"is there (?:a|an(?= o)) {WORDS}", question.text).groups()
        assert "a orange" not in question.text
        assert question.answer == ("yes" if matching(scene.objects, *words) else "no")


def test_comparison_answers_are_correct():
    for scene, question in of_kind("compare"):
        words = re.fullmatch(f"are there more {WORDS} than {WORDS}", question.text).groups()
        first, second = (len(matching(scene.objects, *part)) for part in (words[:3], words[3:]))
        assert question.answer == ("yes" if first > second else "no")


def test_same_colour_answers_are_correct():
    for scene, question in of_kind("same"):
        text = f"is there anything of the same colour as the {WORDS}"
        (obj,) = matching(scene.objects, *re.fullmatch(text, question.text).groups())
        others = [other.colour for other in scene.objects if other is not obj]
        assert question.answer == ("yes" if obj.colour in others else "no")


def test_position_answers_are_correct():
    for scene, question in of_kind("position"):
        words = re.fullmatch(f"is the {WORDS} {SIDE} the {WORDS}", question.text).groups()
        (one,), (other,) = (matching(scene.objects, *part) for part in (words[:3], words[4:]))
        assert question.answer == ("yes" if relation((one,), (other,)) == words[3] else "no")


def test_attribute_questions_match_exactly_one_object():
    for scene, question in of_kind("attribute"):
        asks_colour, *words = re.fullmatch(f"what( colour)? is the {WORDS}", question.text).groups()
        (obj,) = matching(scene.objects, *words)
        assert question.answer == (obj.colour if asks_colour else obj.shape)


def test_relation_questions_select_one_of_several_objects():
    text = f"what( colour)? is the {WORDS} {SIDE} the {WORDS}"
    for scene, question in of_kind("relation"):
        asks_colour, *words = re.fullmatch(text, question.text).groups()
        (other,) = matching(scene.objects, *words[4:])
        rest = [obj for obj in scene.objects if obj is not other]
        matches = matching(rest, *words[:3])
        (obj,) = [one for one in matches if relation((one,), (other,)) == words[3]]
        assert len(matches) > 1
        assert question.answer == (obj.colour if asks_colour else obj.shape)


def test_questions_of_a_known_scene():
    assert candidates(SCENE, "count")["how many red shapes are there"] == "2"
    assert candidates(SCENE, "count")["how many crosses are there"] == "1"
    assert candidates(SCENE, "compare")["are there more red shapes than blue shapes"] == "yes"
    assert candidates(SCENE, "compare")["are there more circles than stars"] == "no"
    same = candidates(SCENE, "same")
    assert same["is there anything of the same colour as the cross"] == "yes"
    assert same["is there anything of the same colour as the star"] == "no"
    assert candidates(SCENE, "position")["is the circle left of the star"] == "yes"
    assert candidates(SCENE, "position")["is the circle above the star"] == "no"
    relations = candidates(SCENE, "relation")
    assert relations["what is the shape right of the star"] == "cross"
    assert relations["what is the red shape left of the star"] == "circle"
    assert not [text for text in relations if "above" in text]


@pytest.mark.parametrize("kind", ["exists", "compare", "same", "position"])
def test_yes_and_no_are_balanced(kind):
    answers = Counter(question.answer for _, question in of_kind(kind))
    assert 0.35 < answers["yes"] / answers.total() < 0.65


def test_all_colours_and_shapes_occur_as_answers():
    names = {question.answer for _, question in of_kind("attribute")}
    assert names == {*COLOURS, *SHAPES}


def test_question_only_baseline_predicts_the_most_frequent_answer():
    train = [Example(("a", "1"), "yes"), Example(("a", "2"), "yes"), Example(("b", "1"), "no")]
    test = [Example(("a", "3"), "yes"), Example(("b", "3"), "yes"), Example(("c", "3"), "yes")]
    assert question_only_accuracy(train, test) == pytest.approx(200 / 3)


def test_note_has_question_only_accuracy():
    splits = find_data("scenes:questions,300")
    accuracy = float(re.search(r"([\d.]+) % accuracy from the question", splits.note)[1])
    assert accuracy == pytest.approx(question_only_accuracy(splits.train, splits.test), abs=0.05)
    assert accuracy < 50
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [300, 500, 500]
    scenes = [{e.source[1] for e in part} for part in (splits.train, splits.valid, splits.test)]
    assert not scenes[0] & (scenes[1] | scenes[2])
    example = splits.train[0]
    expected = {
        question.text: question for question in sample_questions(find_scene(example.source[1]))
    }
    assert example.target == expected[example.source[0]].answer
    assert example.tags == (expected[example.source[0]].kind,)
