"""Sentences as in figure 2 of Sutskever et al. 2014, and others of the same two patterns.

"Mary admires John", with other verbs and with the roles reversed; and "I gave her a card in the
garden", in three forms with one meaning and in three with the roles reversed. The three forms have
one German translation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from regard.data.example import Example

NAMES = (
    "Mary", "John", "Anna", "Peter", "Lisa", "Paul",
    "Emma", "Max", "Clara", "Felix", "Laura", "Tim",
)  # fmt: skip
LIKING = {
    "admires": "{} bewundert {}.",
    "respects": "{} respektiert {}.",
    "is in love with": "{} ist in {} verliebt.",
}
"""English verbs of the figure with the German sentence of two names."""
VERBS = {
    **LIKING,
    "visits": "{} besucht {}.",
    "knows": "{} kennt {}.",
    "is looking for": "{} sucht {}.",
    "calls": "{} ruft {} an.",
    "is waiting for": "{} wartet auf {}.",
}


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun with the verb forms that agree with it."""

    subject: str
    object: str
    was: str
    german: str
    """German subject with the past tense of `geben`."""
    dative: str


PRONOUNS = (
    Pronoun("I", "me", "was", "ich gab", "mir"),
    Pronoun("she", "her", "was", "sie gab", "ihr"),
    Pronoun("he", "him", "was", "er gab", "ihm"),
    Pronoun("we", "us", "were", "wir gaben", "uns"),
    Pronoun("they", "them", "were", "sie gaben", "ihnen"),
    Pronoun("you", "you", "were", "du gabst", "dir"),
)
THINGS = {
    "a card": "eine Karte", "a book": "ein Buch", "a key": "einen Schlüssel",
    "a letter": "einen Brief", "a picture": "ein Bild", "an apple": "einen Apfel",
    "a ring": "einen Ring", "a flower": "eine Blume",
}  # fmt: skip
PLACES = {
    "in the garden": "im Garten", "in the kitchen": "in der Küche", "at school": "in der Schule",
    "in the park": "im Park", "at the station": "am Bahnhof", "in the hotel": "im Hotel",
    "in the office": "im Büro", "at the lake": "am See",
}  # fmt: skip


@dataclass(frozen=True)
class Roles:
    """Sentences of one meaning, and the same with the roles of two people reversed."""

    meaning: tuple[Example, ...]
    reversed: tuple[Example, ...]

    @property
    def examples(self) -> tuple[Example, ...]:
        """All sentences with their translations."""
        return (*self.meaning, *self.reversed)

    @property
    def sentences(self) -> list[str]:
        """All sentences; the first half has one meaning, the second half the other."""
        return [example.source for example in self.examples]


def liking(first: str, verb: str, second: str) -> Roles:
    """Return `Mary admires John.` and `John admires Mary.`, with their translations."""
    one, other = (
        Example(f"{a} {verb} {b}.", VERBS[verb].format(a, b))
        for a, b in ((first, second), (second, first))
    )
    return Roles((one,), (other,))


@dataclass(frozen=True)
class Gift:
    """Meaning of one gift."""

    giver: Pronoun
    receiver: Pronoun
    thing: str
    place: str

    @property
    def forms(self) -> tuple[Example, ...]:
        """Active sentence, the same with the place first, and passive; one translation."""
        giver, receiver = self.giver, self.receiver
        active = f"{giver.subject} gave {receiver.object} {self.thing}"
        english = (
            f"{active} {self.place}.",
            f"{self.place}, {active}.",
            f"{receiver.subject} {receiver.was} given {self.thing} by {giver.object} {self.place}.",
        )
        german = f"{giver.german} {receiver.dative} {PLACES[self.place]} {THINGS[self.thing]}."
        return tuple(Example(_capitalise(form), _capitalise(german)) for form in english)


def giving(gift: Gift) -> Roles:
    """Return three forms of `I gave her a card in the garden.`, and of the reversed roles."""
    turned = replace(gift, giver=gift.receiver, receiver=gift.giver)
    return Roles(gift.forms, turned.forms)


def _capitalise(text: str) -> str:
    return text[0].upper() + text[1:]


@dataclass(frozen=True)
class Parts:
    """Disjoint parts of all sentences."""

    train: Sequence[Roles]
    valid: Sequence[Roles]
    liking: Sequence[Roles]
    """Test sentences of pairs of names with the three verbs of the figure, which come first."""
    giving: Sequence[Roles]
    """Test sentences about gifts; those of the figure come first."""


def split_sentences(*, num_pairs: int, num_gifts: int, num_valid: int) -> Parts:
    """Split all sentences. Those of the figure are test sentences.

    Args:
        num_pairs: Pairs of names whose sentences with the verbs of the figure are held out.
        num_gifts: Gifts of the test part.
        num_valid: Gifts of the validation part.
    """
    generator = Random(0)
    pairs = list(combinations(NAMES, 2))
    gifts = [
        giving(Gift(one, other, thing, place))
        for one, other in combinations(PRONOUNS, 2)
        for thing in THINGS
        for place in PLACES
    ]
    # The first of each list are those of the figure.
    held_pairs = [pairs[0], *generator.sample(pairs[1:], num_pairs - 1)]
    rest = generator.sample(gifts[1:], len(gifts) - 1)
    gifts = [gifts[0], *rest]
    test = gifts[:num_gifts]
    valid = gifts[num_gifts : num_gifts + num_valid]
    known = [
        liking(one, verb, other)
        for one, other in pairs
        for verb in VERBS
        if verb not in LIKING or (one, other) not in held_pairs
    ]
    held = [liking(one, verb, other) for one, other in held_pairs for verb in LIKING]
    return Parts([*known, *gifts[num_gifts + num_valid :]], valid, held, test)
