"""Sentences with equal words: paraphrases by word order, and role swaps with another meaning.

Moving a time adverbial to the front of an English sentence keeps its meaning. Swapping subject and
object changes it.
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
class RoleSwap:
    """Four sentences of the same words with two meanings."""

    original: tuple[str, str]
    """Original meaning: time last, and time first."""
    swapped: tuple[str, str]
    """Subject and object swapped: time last, and time first."""
    translations: tuple[str, str]
    """German translations of both meanings, in one word order each."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All four sentences."""
        return (*self.original, *self.swapped)

    @property
    def examples(self) -> list[Example]:
        """All four sentences with their translations."""
        pairs = zip((self.original, self.swapped), self.translations, strict=True)
        return [Example(english, german) for both, german in pairs for english in both]


def sample_role_swaps(
    num: int, *, seed: int = 0, exclude: Collection[str] = (), max_words: int = 10
) -> list[RoleSwap]:
    """Sample sentences whose word order and roles can be swapped.

    Args:
        num: Number of sets of four sentences.
        seed: Seed of the sentences.
        exclude: Sentences to exclude, such as training sentences.
        max_words: Maximum number of words of a sentence.
    """
    at_least("num", num, 0)
    grammar = Grammar(load_lexicon(), Random(seed))
    swaps: dict[tuple[str, ...], RoleSwap] = {}
    while len(swaps) < num:
        clause = _swappable_clause(grammar.sample())
        if clause is None:
            continue
        swap = _swap(clause)
        is_new = not any(sentence in exclude for sentence in swap.sentences)
        if is_new and len(swap.original[0].split()) <= max_words:
            swaps.setdefault(tuple(sorted(swap.sentences)), swap)
    return list(swaps.values())


def _swappable_clause(sentence: trees.Sentence) -> trees.Clause | None:
    """Return the clause if it has a time, and two people that can swap roles; otherwise None."""
    if not isinstance(sentence, trees.Text) or len(sentence.statements) > 1:
        return None
    (statement,) = sentence.statements
    clause, verb = statement.clause, statement.clause.verb
    if statement.before or statement.after or statement.also or clause.time is None:
        return None
    agent, patient = clause.subject, clause.object
    if not isinstance(agent, trees.NounPhrase) or not isinstance(patient, trees.NounPhrase):
        return None
    # With the same number, the verb has the same form for both.
    is_even = agent.is_human and patient.is_human and agent.is_plural == patient.is_plural
    has_clause = agent.relative is not None or patient.relative is not None
    fits_verb = agent.noun.kind in verb.object and patient.noun.kind in verb.subject
    is_other = agent.noun is not patient.noun
    return clause if is_even and is_other and fits_verb and not has_clause else None


def _swap(clause: trees.Clause) -> RoleSwap:
    assert clause.object is not None
    swapped = replace(
        clause, subject=clause.object, object=clause.subject, person=clause.object.person
    )
    both = (clause, swapped)
    last, first = ([_english(one, is_first=is_first) for one in both] for is_first in (False, True))
    german = [join_words(GermanWriter().write(_sentence(one, is_first=False))) for one in both]
    return RoleSwap((last[0], first[0]), (last[1], first[1]), (german[0], german[1]))


def _english(clause: trees.Clause, *, is_first: bool) -> str:
    return join_words(write_english(_sentence(clause, is_first=is_first)))


def _sentence(clause: trees.Clause, *, is_first: bool) -> trees.Sentence:
    """Return a clause as a sentence, with the time first or in its default position."""
    return trees.Text((trees.Statement(replace(clause, has_time_first=is_first)),))
