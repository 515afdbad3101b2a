"""Language-independent sentence trees and word alignments.

A tree is realised in English and in German. Each word has marks: the nodes of the tree that it
realises. Words of both languages with a common mark are aligned.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.data.datasets.synthetic.phrasebook import lexicon
from regard.data.example import Alignment

Mark = tuple[object, str]
"""A node of the tree and a part of the node."""

Marks = tuple[Mark, ...]


class Word(NamedTuple):
    """A word of a sentence with its marks."""

    text: str
    marks: Marks = ()


# Nodes are compared by identity: a sentence may have two equal noun phrases.
@dataclass(frozen=True, slots=True, eq=False)
class PronounPhrase:
    """A personal pronoun."""

    pronoun: lexicon.Pronoun

    @property
    def person(self) -> str:
        """The pronoun that verbs agree with."""
        return "he" if self.pronoun.name in {"she", "it"} else self.pronoun.name


@dataclass(frozen=True, slots=True, eq=False)
class NounPhrase:
    """A noun with its determiner, adjectives and relative clause."""

    noun: lexicon.Noun
    determiner: lexicon.Determiner | None = None
    is_plural: bool = False
    adjectives: tuple[lexicon.Adjective, ...] = ()
    relative: "Clause | None" = None
    """A clause without its subject, or without its object if it has a subject."""

    @property
    def person(self) -> str:
        """The pronoun that verbs agree with."""
        return "they" if self.is_plural else "he"

    @property
    def is_human(self) -> bool:
        """Whether the question word is "who" and not "what"."""
        return self.noun.kind in {"person", "acquaintance", "profession", "relative", "name"}

    @property
    def is_definite(self) -> bool:
        """Whether it is definite."""
        if self.determiner is None:
            return self.noun.is_proper
        return self.determiner.name != "a" and self.determiner.adjectives != "strong"


@dataclass(frozen=True, slots=True, eq=False)
class NounPair:
    """Two noun phrases joined by "and"."""

    first: NounPhrase
    second: NounPhrase

    person = "they"


Nominal = PronounPhrase | NounPhrase | NounPair


@dataclass(frozen=True, slots=True, eq=False)
class PrepositionalPhrase:
    """A preposition with its noun phrase."""

    preposition: lexicon.Preposition
    nominal: Nominal
    is_goal: bool = False
    """Whether it is a direction and not a location: two-way prepositions take the accusative."""


@dataclass(slots=True, eq=False)
class Clause:
    """A verb with its dependents, without word order.

    The only mutable node, because it is filled step by step while it is sampled.
    """

    verb: lexicon.Verb
    person: str
    """The pronoun the verb agrees with."""
    subject: Nominal | None = None
    """None if it is asked for, is a relative pronoun, or is shared with the clause before."""
    is_past: bool = False
    modal: lexicon.Modal | None = None
    is_negated: bool = False
    recipient: Nominal | None = None
    object: Nominal | None = None
    about: PrepositionalPhrase | None = None
    predicate: lexicon.Adjective | NounPhrase | None = None
    manner: PrepositionalPhrase | lexicon.FixedPhrase | None = None
    location: PrepositionalPhrase | lexicon.FixedPhrase | None = None
    time: lexicon.FixedPhrase | None = None
    frequency: lexicon.FixedPhrase | None = None
    has_time_first: bool = False
    complement: "Subordinate | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class Subordinate:
    """A clause that depends on another one."""

    conjunction: lexicon.Conjunction | str
    """Conjunction, or question word of an indirect question: "where", "why"."""
    clause: Clause

    @property
    def is_infinitive(self) -> bool:
        """Whether it has "to" and no subject."""
        return not isinstance(self.conjunction, str) and self.conjunction.name.endswith("to")


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A main clause with the clauses around it."""

    clause: Clause
    before: Subordinate | None = None
    after: Subordinate | None = None
    also: Clause | None = None
    """Second clause with the same subject."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A question; `asks` is who, whom, what, where, when, why, or empty for yes and no."""

    clause: Clause
    asks: str = ""
    after: Subordinate | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Statements joined by "and", "but" or "so"."""

    statements: tuple[Statement, ...]
    connectives: tuple[str, ...] = ()


Sentence = Question | Text


def head_of(nominal: Nominal | None) -> NounPhrase | None:
    """Return a noun phrase, or the first one of a pair; None for a pronoun."""
    phrase = nominal.first if isinstance(nominal, NounPair) else nominal
    return phrase if isinstance(phrase, NounPhrase) else None


def fixed_words(groups: Iterable[Iterable[str]], clause: Clause, role: str) -> list[Word]:
    """Return the words of a fixed phrase in a role of a clause."""
    return [
        Word(text, ((clause, f"{role} {number}"),))
        for number, group in enumerate(groups)
        for text in group
    ]


def write_sentence(words: Sequence[Word]) -> str:
    """Join words to a text: capitalise the first, remove spaces before punctuation."""
    text = " ".join(word.text for word in words)
    for mark in ".,?":
        text = text.replace(f" {mark}", mark)
    return text[0].upper() + text[1:]


def align(english: Sequence[Word], german: Sequence[Word]) -> Alignment:
    """Align the positions of words with a common mark."""
    positions: dict[Mark, list[int]] = {}
    for i, word in enumerate(english):
        for mark in word.marks:
            positions.setdefault(mark, []).append(i)
    marks = [(j, mark) for j, word in enumerate(german) for mark in word.marks]
    return tuple(sorted({(i, j) for j, mark in marks for i in positions.get(mark, ())}))
