"""Random noun phrases and adverbials of location, time and manner."""

from random import Random

from regard.data.datasets.synthetic.phrasebook import trees
from regard.data.datasets.synthetic.phrasebook.lexicon import (
    Adjective,
    Determiner,
    FixedPhrase,
    Lexicon,
    Noun,
)
from regard.data.datasets.synthetic.phrasebook.trees import head_of

ANYONE = ("person", "acquaintance", "profession", "relative", "name", "pronoun")
WITHOUT_DETERMINER = {"name", "town", "language", "game"}
WITHOUT_POSSESSIVE = {"person", "site", "sight", "transport"}
COLOURED = {"clothing", "vehicle", "thing"}

PRONOUNS = ("I", "I", "I", "you", "you", "he", "she", "we", "they")
SPEAKERS = {"I", "we"}
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
NUMBERS = ("two", "three", "four", "five", "six", "ten")
LOCATION_DETERMINERS = ("the", "the", "the", "the", "the", "a", "this")


class Phrases:
    """Sampler of the parts of a clause that are not clauses."""

    def __init__(self, lexicon: Lexicon, random: Random) -> None:
        self.lexicon = lexicon
        self.random = random
        self._noun_pools: dict[tuple[str, ...], list[Noun]] = {}

    def nominal(
        self,
        kinds: tuple[str, ...],
        determiners: str = "any",
        *,
        beside: trees.Nominal | None = None,
    ) -> trees.Nominal:
        """Sample a noun phrase or a pronoun.

        Args:
            kinds: The kinds of nouns to sample from.
            determiners: "any"; "plain" excludes numbers, "every" and pairs, which are not used
                with "not"; "known" allows only definite ones.
            beside: Participant of the clause that must not occur twice.
        """
        if kinds == ("weather",):
            return trees.PronounPhrase(self.lexicon.pronouns["it"])
        if "pronoun" in kinds and self.chance(0.4):
            return self._pronoun(beside)
        nouns = self._nouns(kinds)
        noun = self.random.choice(nouns)
        while len(nouns) > 1 and isinstance(beside, trees.NounPhrase) and noun is beside.noun:
            noun = self.random.choice(nouns)
        if determiners == "any" and self.chance(0.06):
            other = self.random.choice(self.lexicon.nouns[noun.kind])
            if other is not noun:
                return trees.NounPair(
                    self._noun_phrase(noun, "plain"), self._noun_phrase(other, "plain")
                )
        return self._noun_phrase(noun, determiners)

    def location(self, kind: str) -> trees.PrepositionalPhrase | FixedPhrase:
        """Sample a location of the kind given by `Verb.location`."""
        if kind in {"surface", "surface_rest"}:
            noun = self.random.choice(self.lexicon.nouns["furniture"])
            preposition = self.random.choice(self.lexicon.surfaces)
            phrase = self._noun_phrase(noun, "plain")
            return trees.PrepositionalPhrase(preposition, phrase, is_goal=kind == "surface")
        if kind in self.lexicon.phrases and self.chance(0.3):
            return self.random.choice(self.lexicon.phrases[kind])
        if kind == "rest":
            noun = self.random.choice(self._nouns(("site", "room", "sight", "town")))
            assert noun.at is not None
            return trees.PrepositionalPhrase(noun.at, self._location_phrase(noun))
        noun = self.random.choice(
            self._nouns(("town",) if kind == "journey" else ("site", "sight"))
        )
        assert noun.to is not None
        return trees.PrepositionalPhrase(noun.to, self._location_phrase(noun), is_goal=True)

    def manner(
        self, name: str, beside: trees.Nominal | None
    ) -> trees.PrepositionalPhrase | FixedPhrase:
        """Sample an adverbial of manner: with, without or for somebody, or a means of transport."""
        if name == "by":
            return self.random.choice(self.lexicon.phrases["by"])
        nominal = self.nominal(ANYONE, "plain", beside=beside)
        return trees.PrepositionalPhrase(self.lexicon.prepositions[name], nominal)

    def time(self, is_past: bool) -> FixedPhrase:
        """Sample an adverbial of time that fits the tense."""
        tensed = "past_time" if is_past else "present_time"
        return self.random.choice(self.lexicon.phrases[tensed if self.chance(0.5) else "time"])

    def frequency(self) -> FixedPhrase:
        """Sample an adverbial of frequency."""
        return self.random.choice(self.lexicon.phrases["frequency"])

    def quality(self, subject: trees.Nominal | None) -> Adjective:
        """Sample a predicate adjective that fits a subject."""
        kind = kind_of(subject)
        adjective = self._adjective("person" if kind in ANYONE else kind)
        while isinstance(subject, trees.NounPhrase) and adjective in subject.adjectives:
            adjective = self._adjective("person" if kind in ANYONE else kind)
        return adjective

    def profession(self, is_plural: bool) -> trees.NounPhrase:
        """Sample a predicate noun phrase with a profession."""
        noun = self.random.choice(self.lexicon.nouns["profession"])
        article = None if is_plural else self.lexicon.determiners["a"]
        adjectives = (self._adjective("profession"),) if self.chance(0.35) else ()
        return trees.NounPhrase(noun, article, is_plural, adjectives)

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.random.random() < probability

    def _pronoun(self, beside: trees.Nominal | None) -> trees.PronounPhrase:
        name = self.random.choice(PRONOUNS)
        if isinstance(beside, trees.PronounPhrase):
            other = beside.pronoun.name
            while name == other or {name, other} <= SPEAKERS:
                name = self.random.choice(PRONOUNS)
        return trees.PronounPhrase(self.lexicon.pronouns[name])

    def _noun_phrase(self, noun: Noun, determiners: str) -> trees.NounPhrase:
        if noun.kind in WITHOUT_DETERMINER:
            return trees.NounPhrase(noun)
        is_plural = noun.english_plural != "" and self.chance(0.25)
        determiner = self._determiner(noun, is_plural, determiners)
        adjectives: tuple[Adjective, ...] = ()
        if self.chance(0.25):
            adjectives = (self._adjective(noun.kind),)
            if noun.kind in COLOURED and self.chance(0.3):
                adjectives += (self._adjective("colour"),)
        return trees.NounPhrase(noun, determiner, is_plural, adjectives)

    def _determiner(self, noun: Noun, is_plural: bool, determiners: str) -> Determiner | None:
        table = self.lexicon.determiners
        roll = self.random.random()
        if noun.kind == "relative" or (roll < 0.16 and noun.kind not in WITHOUT_POSSESSIVE):
            return table[self.random.choice(POSSESSIVES)]
        if roll < 0.5 or determiners == "known":
            return table["this" if roll > 0.44 and noun.english_plural else "the"]
        if noun.english_plural == "":
            return None
        if not is_plural:
            return table["every" if determiners == "any" and roll > 0.96 else "a"]
        if determiners == "plain" or roll < 0.65:
            return None
        return table["many" if roll < 0.78 else self.random.choice(NUMBERS)]

    def _location_phrase(self, noun: Noun) -> trees.NounPhrase:
        if noun.kind in WITHOUT_DETERMINER:
            return trees.NounPhrase(noun)
        determiner = self.lexicon.determiners[self.random.choice(LOCATION_DETERMINERS)]
        adjectives = (self._adjective(noun.kind),) if self.chance(0.25) else ()
        return trees.NounPhrase(noun, determiner, adjectives=adjectives)

    def _adjective(self, kind: str) -> Adjective:
        return self.random.choice(self.lexicon.adjectives[kind])

    def _nouns(self, kinds: tuple[str, ...]) -> list[Noun]:
        if kinds not in self._noun_pools:
            self._noun_pools[kinds] = [
                n for kind in kinds for n in self.lexicon.nouns.get(kind, ())
            ]
        return self._noun_pools[kinds]


def kind_of(nominal: trees.Nominal | None) -> str:
    """Return the kind of a noun phrase, or "pronoun"."""
    phrase = head_of(nominal)
    return phrase.noun.kind if phrase else "pronoun"
