"""What is said of a scene: one caption, which words of it name which things, and phrases.

A caption says no more than the picture shows, and a picture has one caption only: what is large is
named before what is small, and what is alike in this from left to right.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from regard.core.config import read_toml
from regard.data.datasets.synthetic.scenes.things import COLOURS, Box, Group, Scene

NUMBERS = ("no", "a", "two", "three", "four")
TOGETHER = {"cross": "crosses"}
"""Plurals that do not just have an s."""

GERMAN = read_toml(Path(__file__).with_name("german.toml"))
"""The words of German captions."""


@dataclass(frozen=True)
class Word:
    """A word of a caption."""

    text: str
    things: tuple[int, ...] = ()
    """Which of the scene's things it names; none for words in between."""


@dataclass(frozen=True)
class Phrase:
    """Words that name one thing of a scene and no other."""

    text: str
    thing: int
    """Which of the scene's things."""
    kind: str
    """What singles it out: its "looks", or its "place" among things that look alike."""


def caption(scene: Scene) -> str:
    """Return what is said of a scene, such as `a large red circle is above two small blue stars`.

    What comes third is said of what came second: `…, which is left of a small green cross`, but
    without the comma.
    """
    return " ".join(word.text for word in caption_words(scene))


def caption_words(scene: Scene) -> list[Word]:
    """Return the words of a caption, each with the things that it names.

    Size, colour and shape name things; articles, numbers and relations do not.
    """
    words: list[Word] = []
    first = 0
    for place, group in enumerate(scene.groups):
        if place:
            verb = "is" if len(scene.groups[place - 1]) == 1 else "are"
            between = f"{'which ' if place > 1 else ''}{verb} {scene.relations[place - 1]}"
            words += [Word(text) for text in between.split()]
        named = tuple(range(first, first + len(group)))
        first += len(group)
        words.append(Word(NUMBERS[len(group)]))
        words += [Word(text, named) for text in looks(group).split()]
    return words


def looks(group: Group) -> str:
    """Say what the things of a group look like: `small blue stars`."""
    thing = group[0]
    noun = thing.shape
    if len(group) > 1:
        noun = TOGETHER.get(noun, f"{noun}s")
    return f"{thing.size} {thing.colour} {noun}"


def english_caption(scene: Scene) -> str:
    """Return the caption of a scene without its colours: `a large circle is above two stars`.

    It leaves open what the German one tells, so that only the image can decide it.
    """
    return " ".join(word.text for word in caption_words(scene) if word.text not in COLOURS)


def german_caption(scene: Scene) -> str:
    """Return the caption of a scene in German, with its colours.

    `ein großer roter Kreis ist über zwei kleinen blauen Sternen , die links von …`
    """
    words = [_german_name(scene.groups[0], is_dative=False)]
    ends: list[str] = []
    for number, (one, other) in enumerate(pairwise(scene.groups)):
        verb = "ist" if len(one) == 1 else "sind"
        if number:
            # In a clause that says more of a thing, the verb comes last.
            article = "die" if len(one) > 1 else GERMAN["nouns"][one[0].shape][0]
            words.append(f", {article}")
            ends.insert(0, verb)
        else:
            words.append(verb)
        words += [GERMAN["relations"][scene.relations[number]], _german_name(other, is_dative=True)]
    return " ".join(words + ends)


def phrases(scene: Scene) -> list[Phrase]:
    """Return what single things can be called: `large red circle`, or `upper small blue star`.

    Of two that look alike it takes the place of one, by the direction in which they are farther
    apart. Three of them have no such names.
    """
    found: list[Phrase] = []
    first = 0
    for group in scene.groups:
        if len(group) == 1:
            found.append(Phrase(looks(group), first, "looks"))
        elif len(group) == 2:
            for thing, place in zip((0, 1), _places(group), strict=True):
                text = f"{place} {looks(group[:1])}"
                found.append(Phrase(text, first + thing, "place"))
        first += len(group)
    return found


def tags(scene: Scene) -> tuple[str, ...]:
    """Return what is worth knowing of a scene where errors are looked at."""
    num = len(scene.things)
    relations = dict.fromkeys(scene.relations)
    is_counted = any(len(group) > 1 for group in scene.groups)
    return (
        f"{num} object{'s' if num > 1 else ''}",
        *(relations or ("no relation",)),
        *(("counted",) if is_counted else ()),
        "noisy" if scene.background.noise else "plain",
    )


def format_box(box: Box) -> str:
    """Write a box as text: left, upper, right and lower edge as shares of the canvas."""
    return " ".join(f"{edge:.3f}" for edge in box)


def _places(pair: Group) -> tuple[str, str]:
    one, other = pair
    if abs(one.x - other.x) >= abs(one.y - other.y):
        return ("left", "right") if one.x < other.x else ("right", "left")
    return ("upper", "lower") if one.y < other.y else ("lower", "upper")


def _german_name(group: Group, *, is_dative: bool) -> str:
    thing, num = group[0], len(group)
    article, noun, plural = GERMAN["nouns"][thing.shape]
    if num > 1:
        noun = plural + "n" * is_dative
        first, ending = GERMAN["numbers"][num], "en" if is_dative else "e"
    elif is_dative:
        first, ending = "einem", "en"
    else:
        first, ending = "ein", GERMAN["endings"][article]
    size, colour = GERMAN["sizes"][thing.size], GERMAN["colours"][thing.colour]
    return f"{first} {size}{ending} {colour}{ending} {noun}"
