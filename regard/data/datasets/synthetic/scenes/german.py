"""What is said of a scene in two languages: English without colours, German with them.

English leaves open what German says, so that only the picture can decide it.
"""

from regard.data.datasets.synthetic.scenes.captions import caption_words
from regard.data.datasets.synthetic.scenes.things import COLOURS, Group, Scene

COUNTED = ("kein", "ein", "zwei", "drei", "vier")
SIZES = {"small": "klein", "large": "groß"}
HUES = {
    "red": "rot",
    "green": "grün",
    "blue": "blau",
    "yellow": "gelb",
    "purple": "violett",
    "orange": "orangefarben",
}
NOUNS: dict[str, tuple[str, str, str]] = {
    "circle": ("der", "Kreis", "Kreise"),
    "square": ("das", "Quadrat", "Quadrate"),
    "triangle": ("das", "Dreieck", "Dreiecke"),
    "star": ("der", "Stern", "Sterne"),
    "cross": ("das", "Kreuz", "Kreuze"),
}
"""The article, the noun, and the plural."""
RELATIONS = {
    "left of": "links von",
    "right of": "rechts von",
    "above": "über",
    "below": "unter",
}
_ENDINGS = {"der": "er", "das": "es"}


def english(scene: Scene) -> str:
    """Return the caption of a scene without its colours: `a large circle is above two stars`."""
    return " ".join(word.text for word in caption_words(scene) if word.text not in COLOURS)


def german(scene: Scene) -> str:
    """Return the caption of a scene in German, with its colours.

    `ein großer roter Kreis ist über zwei kleinen blauen Sternen , die links von …`
    """
    words = [_name(scene.groups[0], is_dative=False)]
    ends: list[str] = []
    pairs = zip(scene.groups, scene.groups[1:], strict=False)
    for place, (one, other) in enumerate(pairs):
        verb = "ist" if len(one) == 1 else "sind"
        if place:
            # In a clause that says more of a thing, the verb comes last.
            words.append(f", {_which(one)}")
            ends.insert(0, verb)
        else:
            words.append(verb)
        words += [RELATIONS[scene.relations[place]], _name(other, is_dative=True)]
    return " ".join(words + ends)


def _name(group: Group, *, is_dative: bool) -> str:
    thing, num = group[0], len(group)
    article, noun, plural = NOUNS[thing.shape]
    if num > 1:
        noun = plural + "n" * is_dative
        first, ending = COUNTED[num], "en" if is_dative else "e"
    elif is_dative:
        first, ending = "einem", "en"
    else:
        first, ending = "ein", _ENDINGS[article]
    return f"{first} {SIZES[thing.size]}{ending} {HUES[thing.colour]}{ending} {noun}"


def _which(group: Group) -> str:
    return "die" if len(group) > 1 else NOUNS[group[0].shape][0]
