"""What is said of a scene: one caption, which words of it name which things, and phrases.

A caption says no more than the picture shows, and a picture has one caption only: what is large is
named before what is small, and what is alike in this from left to right.
"""

from dataclasses import dataclass

from regard.data.datasets.synthetic.scenes.things import Box, Group, Scene

NUMBERS = ("no", "a", "two", "three", "four")
TOGETHER = {"cross": "crosses"}
"""Plurals that do not just have an s."""


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
