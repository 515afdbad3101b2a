"""Captions of scenes, the objects that their words name, and phrases for single objects.

A scene has exactly one caption: large objects are named before small ones, and objects of the same
size from left to right.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from regard.core.config import read_toml
from regard.data.datasets.synthetic.scenes.objects import COLOURS, Box, Group, Scene

NUMBERS = ("no", "a", "two", "three", "four")
IRREGULAR_PLURALS = {"cross": "crosses"}
"""Plurals that do not just add an s."""

GERMAN = read_toml(Path(__file__).with_name("german.toml"))
"""Words of German captions."""


@dataclass(frozen=True)
class Word:
    """A word of a caption."""

    text: str
    object_indices: tuple[int, ...] = ()
    """Indices of the objects that it names; empty for function words."""


@dataclass(frozen=True)
class Phrase:
    """Words that name exactly one object of a scene."""

    text: str
    object_index: int
    """Index of the object in the scene."""
    kind: str
    """Property that distinguishes the object: appearance, or position among equal objects."""


def caption(scene: Scene) -> str:
    """Return the caption of a scene, such as `a large red circle is above two small blue stars`.

    A third group is described relative to the second: `… which is left of a small green cross`.
    """
    return " ".join(word.text for word in caption_words(scene))


def caption_words(scene: Scene) -> list[Word]:
    """Return the words of a caption with the objects that they name.

    Size, colour and shape name objects; articles, numbers and relations do not.
    """
    words: list[Word] = []
    first = 0
    for index, group in enumerate(scene.groups):
        if index:
            verb = "is" if len(scene.groups[index - 1]) == 1 else "are"
            link = f"{'which ' if index > 1 else ''}{verb} {scene.relations[index - 1]}"
            words += [Word(text) for text in link.split()]
        named = tuple(range(first, first + len(group)))
        first += len(group)
        words.append(Word(NUMBERS[len(group)]))
        words += [Word(text, named) for text in describe(group).split()]
    return words


def describe(group: Group) -> str:
    """Return size, colour and shape of a group: `small blue stars`."""
    obj = group[0]
    noun = obj.shape
    if len(group) > 1:
        noun = IRREGULAR_PLURALS.get(noun, f"{noun}s")
    return f"{obj.size} {obj.colour} {noun}"


def english_caption(scene: Scene) -> str:
    """Return the caption of a scene without its colours: `a large circle is above two stars`.

    The colours of the German caption can only be predicted from the image.
    """
    return " ".join(word.text for word in caption_words(scene) if word.text not in COLOURS)


def german_caption(scene: Scene) -> str:
    """Return the caption of a scene in German, with its colours.

    `ein großer roter Kreis ist über zwei kleinen blauen Sternen , die links von …`
    """
    words = [_german_name(scene.groups[0], is_dative=False)]
    ends: list[str] = []
    for index, (group, other) in enumerate(pairwise(scene.groups)):
        verb = "ist" if len(group) == 1 else "sind"
        if index:
            # In a relative clause the verb comes last.
            article = "die" if len(group) > 1 else GERMAN["nouns"][group[0].shape][0]
            words.append(f", {article}")
            ends.insert(0, verb)
        else:
            words.append(verb)
        words += [GERMAN["relations"][scene.relations[index]], _german_name(other, is_dative=True)]
    return " ".join(words + ends)


def phrases(scene: Scene) -> list[Phrase]:
    """Return phrases for single objects: `large red circle`, or `upper small blue star`.

    Two equal objects are distinguished by their position along the axis on which they are farther
    apart. Three equal objects have no phrases.
    """
    result: list[Phrase] = []
    first = 0
    for group in scene.groups:
        if len(group) == 1:
            result.append(Phrase(describe(group), first, "appearance"))
        elif len(group) == 2:
            for offset, position in enumerate(_positions(group)):
                text = f"{position} {describe(group[:1])}"
                result.append(Phrase(text, first + offset, "position"))
        first += len(group)
    return result


def tags(scene: Scene) -> tuple[str, ...]:
    """Return the tags of a scene for error analysis."""
    num = len(scene.objects)
    relations = dict.fromkeys(scene.relations)
    is_counted = any(len(group) > 1 for group in scene.groups)
    return (
        f"{num} object{'s' if num > 1 else ''}",
        *(relations or ("no relation",)),
        *(("counted",) if is_counted else ()),
        "noisy" if scene.background.noise else "plain",
    )


def format_box(box: Box) -> str:
    """Format a box as text: left, upper, right and lower edge as fractions of the image size."""
    return " ".join(f"{edge:.3f}" for edge in box)


def _positions(pair: Group) -> tuple[str, str]:
    first, second = pair
    if abs(first.x - second.x) >= abs(first.y - second.y):
        return ("left", "right") if first.x < second.x else ("right", "left")
    return ("upper", "lower") if first.y < second.y else ("lower", "upper")


def _german_name(group: Group, *, is_dative: bool) -> str:
    obj, num = group[0], len(group)
    article, noun, plural = GERMAN["nouns"][obj.shape]
    if num > 1:
        noun = plural + "n" * is_dative
        first, ending = GERMAN["numbers"][num], "en" if is_dative else "e"
    elif is_dative:
        first, ending = "einem", "en"
    else:
        first, ending = "ein", GERMAN["endings"][article]
    size, colour = GERMAN["sizes"][obj.size], GERMAN["colours"][obj.colour]
    return f"{first} {size}{ending} {colour}{ending} {noun}"
