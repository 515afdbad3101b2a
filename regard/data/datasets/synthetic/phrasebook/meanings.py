"""One meaning in two word orders, and the same words with another meaning: who does what to whom.

A time can stand first or last in an English sentence without changing what is said; who does
something and to whom it is done cannot change places.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from random import Random

from regard.core.config import at_least
from regard.data.datasets.synthetic.phrasebook import trees
from regard.data.datasets.synthetic.phrasebook.english import write_english
from regard.data.datasets.synthetic.phrasebook.german import GermanWriter
from regard.data.datasets.synthetic.phrasebook.grammar import Grammar
from regard.data.datasets.synthetic.phrasebook.lexicon import load_lexicon
from regard.data.datasets.synthetic.phrasebook.trees import write_sentence as join_words
from regard.data.example import Example


@dataclass(frozen=True)
class Turned:
    """Four sentences of the same words."""

    said: tuple[str, str]
    """One meaning: the time last, and the time first."""
    reversed: tuple[str, str]
    """The other: who did it has it done to them; the time last, and the time first."""
    translations: tuple[str, str]
    """Both meanings in German, each in one order of words, whatever the English order was."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All four."""
        return (*self.said, *self.reversed)

    @property
    def examples(self) -> list[Example]:
        """All four, each with the translation of what it means."""
        pairs = zip((self.said, self.reversed), self.translations, strict=True)
        return [Example(english, german) for both, german in pairs for english in both]


def sample_turned(
    num: int, *, seed: int = 0, unlike: Collection[str] = (), most_words: int = 10
) -> list[Turned]:
    """Sample sentences that can be turned both ways.

    Args:
        num: How many times four.
        seed: Which ones.
        unlike: Sentences that must not be among them, such as what was trained on.
        most_words: Words of a sentence at most.
    """
    at_least("num", num, 0)
    grammar = Grammar(load_lexicon(), Random(seed))
    found: dict[tuple[str, ...], Turned] = {}
    while len(found) < num:
        clause = _turnable(grammar.sample())
        if clause is None:
            continue
        turned = _turn(clause)
        is_new = not any(sentence in unlike for sentence in turned.sentences)
        if is_new and len(turned.said[0].split()) <= most_words:
            found.setdefault(tuple(sorted(turned.sentences)), turned)
    return list(found.values())


def _turnable(sentence: trees.Sentence) -> trees.Clause | None:
    """Return the clause of a sentence in which two people and a time could change places."""
    if not isinstance(sentence, trees.Text) or len(sentence.statements) > 1:
        return None
    (statement,) = sentence.statements
    clause, verb = statement.clause, statement.clause.verb
    if statement.before or statement.after or statement.also or clause.time is None:
        return None
    doer, other = clause.subject, clause.object
    if not isinstance(doer, trees.NounPhrase) or not isinstance(other, trees.NounPhrase):
        return None
    # Of one number: the verb then has the same form for both.
    is_even = doer.is_human and other.is_human and doer.is_plural == other.is_plural
    has_clause = doer.relative is not None or other.relative is not None
    could_be = doer.noun.kind in verb.object and other.noun.kind in verb.subject
    is_other = doer.noun is not other.noun
    return clause if is_even and is_other and could_be and not has_clause else None


def _turn(clause: trees.Clause) -> Turned:
    assert clause.object is not None
    other = replace(
        clause, subject=clause.object, object=clause.subject, person=clause.object.person
    )
    both = (clause, other)
    last, first = ([_english(one, is_first=is_first) for one in both] for is_first in (False, True))
    german = [join_words(GermanWriter().write(_sentence(one, is_first=False))) for one in both]
    return Turned((last[0], first[0]), (last[1], first[1]), (german[0], german[1]))


def _english(clause: trees.Clause, *, is_first: bool) -> str:
    return join_words(write_english(_sentence(clause, is_first=is_first)))


def _sentence(clause: trees.Clause, *, is_first: bool) -> trees.Sentence:
    """Return a clause as a whole sentence, the time first or where it stands otherwise."""
    return trees.Text((trees.Statement(replace(clause, has_time_first=is_first)),))
