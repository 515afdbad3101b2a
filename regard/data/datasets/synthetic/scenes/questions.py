"""Questions about scenes, which can only be answered with the image.

A scene has at most one question of each kind. The answer is sampled first, then a question with
this answer, so that the words of a question are not informative of its answer. If a scene has no
question with the sampled answer, it has none of that kind.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from random import Random

from regard.core.tables import with_article
from regard.data.datasets.synthetic.scenes.captions import IRREGULAR_PLURALS
from regard.data.datasets.synthetic.scenes.objects import (
    COLOURS,
    RADII,
    SHAPES,
    Scene,
    SceneObject,
    relation,
)
from regard.data.example import Example

RELATIONS = ("left of", "right of", "above", "below")
ANY = "shape"
"""Noun for an object whose shape is not named."""


@dataclass(frozen=True)
class Question:
    """A question and its answer."""

    text: str
    answer: str
    kind: str
    """Key of `KINDS`."""


@dataclass(frozen=True)
class Attributes:
    """Attributes of an object; an empty one matches any."""

    size: str = ""
    colour: str = ""
    shape: str = ""

    def matches(self, obj: SceneObject) -> bool:
        """Return whether an object has these attributes."""
        return (
            self.size in ("", obj.size)
            and self.colour in ("", obj.colour)
            and self.shape in ("", obj.shape)
        )

    def name(self, *, is_plural: bool = False) -> str:
        """Return the words for the attributes: `large red square`, `small shapes`."""
        noun = self.shape or ANY
        if is_plural:
            noun = IRREGULAR_PLURALS.get(noun, f"{noun}s")
        return " ".join(word for word in (self.size, self.colour, noun) if word)


ATTRIBUTES = tuple(
    Attributes(*names)
    for names in product(("", *RADII), ("", *COLOURS), ("", *SHAPES))
    if 0 < sum(map(bool, names)) < 3
)
"""Combinations of one or two attributes; with three, few questions would remain."""
SHORT_ATTRIBUTES = (
    Attributes(),
    *(a for a in ATTRIBUTES if " " not in a.name().removesuffix(f" {ANY}")),
)
"""Combinations of at most one attribute."""

QuestionAnswers = Iterator[tuple[str, str]]
"""Pairs of question and answer."""


def sample_questions(scene: Scene) -> list[Question]:
    """Return at most one question of each kind about a scene, determined by the scene."""
    random = Random(f"questions {scene.seed} {scene.number}")
    questions: list[Question] = []
    for kind, (candidates, odds) in KINDS.items():
        by_answer: defaultdict[str, list[str]] = defaultdict(list)
        for text, answer in candidates(scene):
            by_answer[answer].append(text)
        weights = odds or dict.fromkeys(by_answer, 1.0)
        if not weights:
            continue
        (answer,) = random.choices(list(weights), list(weights.values()))
        if answer in by_answer:
            questions.append(Question(random.choice(by_answer[answer]), answer, kind))
    return questions


def question_only_accuracy(train: Iterable[Example], test: Iterable[Example]) -> float:
    """Return the test accuracy in % of a baseline that does not see the image.

    It predicts the most frequent training answer to the question, or the most frequent answer
    overall if training does not have the question.
    """
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    overall: Counter[str] = Counter()
    for example in train:
        answers[example.source[0]][example.target] += 1
        overall[example.target] += 1
    is_correct = [
        (answers.get(example.source[0]) or overall).most_common(1)[0][0] == example.target
        for example in test
    ]
    return 100 * sum(is_correct) / len(is_correct)


def _exists(scene: Scene) -> QuestionAnswers:
    """Ask for colour and shape; absent combinations share one of them with the scene."""
    present = {(obj.colour, obj.shape) for obj in scene.objects}
    colours, shapes = ({pair[index] for pair in present} for index in (0, 1))
    for colour, shape in product(COLOURS, SHAPES):
        if colour in colours or shape in shapes:
            answer = "yes" if (colour, shape) in present else "no"
            yield f"is there {with_article(Attributes('', colour, shape).name())}", answer


def _count(scene: Scene) -> QuestionAnswers:
    for attributes in ATTRIBUTES:
        count = sum(map(attributes.matches, scene.objects))
        yield f"how many {attributes.name(is_plural=True)} are there", str(count)


def _compare(scene: Scene) -> QuestionAnswers:
    groups = (
        [Attributes(shape=name) for name in SHAPES],
        [Attributes(colour=name) for name in COLOURS],
    )
    for pair in (pair for group in groups for pair in permutations(group, 2)):
        first, second = (sum(map(item.matches, scene.objects)) for item in pair)
        if first + second:
            names = " than ".join(item.name(is_plural=True) for item in pair)
            yield f"are there more {names}", "yes" if first > second else "no"


def _same(scene: Scene) -> QuestionAnswers:
    for obj, name in _unique_objects(scene):
        others = [other for other in scene.objects if other is not obj]
        is_same = any(other.colour == obj.colour for other in others)
        if others and obj.colour not in name:
            text = f"is there anything of the same colour as the {name}"
            yield text, "yes" if is_same else "no"


def _position(scene: Scene) -> QuestionAnswers:
    for (obj, name), (other, other_name) in permutations(_unique_objects(scene), 2):
        actual = relation((obj,), (other,))
        if obj is not other and actual is not None:
            for side in RELATIONS:
                yield f"is the {name} {side} the {other_name}", "yes" if side == actual else "no"


def _attribute(scene: Scene) -> QuestionAnswers:
    for obj, name in _unique_objects(scene):
        if obj.colour not in name:
            yield f"what colour is the {name}", obj.colour
        if obj.shape not in name:
            yield f"what is the {name}", obj.shape


def _relation(scene: Scene) -> QuestionAnswers:
    """Ask for the only object on a side of another that has equal objects on other sides."""
    for other, other_name in _unique_objects(scene):
        rest = [obj for obj in scene.objects if obj is not other]
        sides = [relation((obj,), (other,)) for obj in rest]
        for attributes in SHORT_ATTRIBUTES:
            matching = [
                (obj, side)
                for obj, side in zip(rest, sides, strict=True)
                if attributes.matches(obj)
            ]
            # Objects without a clear relation would make the question ambiguous.
            if len(matching) < 2 or any(side is None for _, side in matching):
                continue
            for side in RELATIONS:
                on_side = [obj for obj, other_side in matching if other_side == side]
                if len(on_side) == 1:
                    name = f"{attributes.name()} {side} the {other_name}"
                    if not attributes.colour:
                        yield f"what colour is the {name}", on_side[0].colour
                    if not attributes.shape:
                        yield f"what is the {name}", on_side[0].shape


def _unique_objects(scene: Scene) -> list[tuple[SceneObject, str]]:
    """Return objects with names that match no other object of the scene."""
    matching = ((item, [*filter(item.matches, scene.objects)]) for item in ATTRIBUTES)
    return [(objects[0], item.name()) for item, objects in matching if len(objects) == 1]


_UNIFORM = {"yes": 1.0, "no": 1.0}
_ANSWERS_OF_SCENE: dict[str, float] = {}

KINDS: dict[str, tuple[Callable[[Scene], QuestionAnswers], dict[str, float]]] = {
    "exists": (_exists, _UNIFORM),
    "count": (_count, {"0": 1.0, "1": 1.2, "2": 1.4, "3": 2.3}),
    "compare": (_compare, _UNIFORM),
    "same": (_same, {"yes": 3.2, "no": 1.0}),
    "position": (_position, _UNIFORM),
    "attribute": (_attribute, _ANSWERS_OF_SCENE),
    "relation": (_relation, _ANSWERS_OF_SCENE),
}
"""Candidate questions by kind, and weights of their answers; rare answers have larger weights.
Without weights, the answers that occur in a scene are equally likely."""
