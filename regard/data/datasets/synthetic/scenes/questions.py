"""Questions about a scene, whose answers need the picture.

Of each kind there is one question a scene at most. Its answer is drawn first and then a question
that has it, so that the words of a question tell little about its answer; where a scene has no
question with that answer, there is none of that kind.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from random import Random

from regard.core.tables import with_article
from regard.data.datasets.synthetic.scenes.captions import TOGETHER
from regard.data.datasets.synthetic.scenes.things import (
    COLOURS,
    RADII,
    SHAPES,
    Scene,
    Thing,
    relation,
)
from regard.data.example import Example

RELATIONS = ("left of", "right of", "above", "below")
ANY = "shape"
"""What a thing is called whose shape is not said."""


@dataclass(frozen=True)
class Question:
    """A question, and what is right."""

    text: str
    answer: str
    kind: str
    """What it takes to answer it: one of `KINDS`."""


@dataclass(frozen=True)
class Look:
    """What things may have in common; an empty name stands for any."""

    size: str = ""
    colour: str = ""
    shape: str = ""

    def fits(self, thing: Thing) -> bool:
        """Tell whether a thing looks like this."""
        return (
            self.size in ("", thing.size)
            and self.colour in ("", thing.colour)
            and self.shape in ("", thing.shape)
        )

    def name(self, *, is_plural: bool = False) -> str:
        """Return the words for it: `large red square`, `small shapes`."""
        noun = self.shape or ANY
        if is_plural:
            noun = TOGETHER.get(noun, f"{noun}s")
        return " ".join(word for word in (self.size, self.colour, noun) if word)


LOOKS = tuple(
    Look(*names)
    for names in product(("", *RADII), ("", *COLOURS), ("", *SHAPES))
    if 0 < sum(map(bool, names)) < 3
)
"""What things can be called in two words; a third would leave little to ask for."""
SHORT_LOOKS = (Look(), *(look for look in LOOKS if " " not in look.name().removesuffix(f" {ANY}")))
"""What they can be called in one, or by nothing but that they are there."""

Asked = Iterator[tuple[str, str]]
"""Questions with their answers."""


def questions(scene: Scene) -> list[Question]:
    """Return questions about a scene, one of each kind at most; they hang on the scene alone."""
    random = Random(f"questions {scene.seed} {scene.number}")
    found: list[Question] = []
    for kind, (ask, odds) in KINDS.items():
        by_answer: defaultdict[str, list[str]] = defaultdict(list)
        for text, answer in ask(scene):
            by_answer[answer].append(text)
        weights = odds or dict.fromkeys(by_answer, 1.0)
        if not weights:
            continue
        (answer,) = random.choices(list(weights), list(weights.values()))
        if answer in by_answer:
            found.append(Question(random.choice(by_answer[answer]), answer, kind))
    return found


def guess_by_question(train: Iterable[Example], test: Iterable[Example]) -> float:
    """Return how many of the test answers in a hundred are guessed right without the picture.

    The guess is the answer that a question has most often in the training part; for a question
    that is not there, the answer of all.
    """
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    overall: Counter[str] = Counter()
    for example in train:
        answers[example.source[0]][example.target] += 1
        overall[example.target] += 1
    guessed = [
        (answers.get(example.source[0]) or overall).most_common(1)[0][0] == example.target
        for example in test
    ]
    return 100 * sum(guessed) / len(guessed)


def _exists(scene: Scene) -> Asked:
    """Ask for a colour with a shape; a wrong one has a colour or a shape of the scene."""
    seen = {(thing.colour, thing.shape) for thing in scene.things}
    colours, shapes = ({pair[place] for pair in seen} for place in (0, 1))
    for colour, shape in product(COLOURS, SHAPES):
        if colour in colours or shape in shapes:
            answer = "yes" if (colour, shape) in seen else "no"
            yield f"is there {with_article(Look('', colour, shape).name())}", answer


def _count(scene: Scene) -> Asked:
    for look in LOOKS:
        num = sum(map(look.fits, scene.things))
        yield f"how many {look.name(is_plural=True)} are there", str(num)


def _compare(scene: Scene) -> Asked:
    for looks in ([Look(shape=shape) for shape in SHAPES], [Look(colour=name) for name in COLOURS]):
        for one, other in permutations(looks, 2):
            first, second = (sum(map(look.fits, scene.things)) for look in (one, other))
            if first + second:
                names = f"{one.name(is_plural=True)} than {other.name(is_plural=True)}"
                yield f"are there more {names}", "yes" if first > second else "no"


def _same(scene: Scene) -> Asked:
    for thing, name in _singled_out(scene):
        others = [other for other in scene.things if other is not thing]
        is_same = any(other.colour == thing.colour for other in others)
        if others and thing.colour not in name:
            text = f"is there anything of the same colour as the {name}"
            yield text, "yes" if is_same else "no"


def _place(scene: Scene) -> Asked:
    for (one, name), (other, other_name) in permutations(_singled_out(scene), 2):
        found = relation((one,), (other,))
        if one is not other and found is not None:
            for place in RELATIONS:
                yield f"is the {name} {place} the {other_name}", "yes" if place == found else "no"


def _attribute(scene: Scene) -> Asked:
    for thing, name in _singled_out(scene):
        if thing.colour not in name:
            yield f"what colour is the {name}", thing.colour
        if thing.shape not in name:
            yield f"what is the {name}", thing.shape


def _relation(scene: Scene) -> Asked:
    """Ask for the one thing on a side of another, where there are more of its look elsewhere."""
    for other, other_name in _singled_out(scene):
        rest = [thing for thing in scene.things if thing is not other]
        places = [relation((thing,), (other,)) for thing in rest]
        for look in SHORT_LOOKS:
            fitting = [
                (thing, place)
                for thing, place in zip(rest, places, strict=True)
                if look.fits(thing)
            ]
            # What stands half above and half beside would make the question unclear.
            if len(fitting) < 2 or any(place is None for _, place in fitting):
                continue
            for side in RELATIONS:
                there = [thing for thing, place in fitting if place == side]
                if len(there) == 1:
                    name = f"{look.name()} {side} the {other_name}"
                    if not look.colour:
                        yield f"what colour is the {name}", there[0].colour
                    if not look.shape:
                        yield f"what is the {name}", there[0].shape


def _singled_out(scene: Scene) -> list[tuple[Thing, str]]:
    """Return things with names that no other thing of the scene has."""
    fitting = ((look, [*filter(look.fits, scene.things)]) for look in LOOKS)
    return [(things[0], look.name()) for look, things in fitting if len(things) == 1]


_EVEN = {"yes": 1.0, "no": 1.0}
_AS_THEY_COME: dict[str, float] = {}

KINDS: dict[str, tuple[Callable[[Scene], Asked], dict[str, float]]] = {
    "exists": (_exists, _EVEN),
    "count": (_count, {"0": 1.0, "1": 1.2, "2": 1.4, "3": 2.3}),
    "compare": (_compare, _EVEN),
    "same": (_same, {"yes": 3.2, "no": 1.0}),
    "place": (_place, _EVEN),
    "attribute": (_attribute, _AS_THEY_COME),
    "relation": (_relation, _AS_THEY_COME),
}
"""How questions of a kind are found, and how often each answer is drawn: what few scenes have, more
often. Without such numbers all answers that a scene has are alike."""
