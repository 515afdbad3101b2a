"""Short builders of phrasebook trees for tests, and their translation."""

from regard.data.datasets.synthetic.phrasebook import write_example
from regard.data.datasets.synthetic.phrasebook.lexicon import load_lexicon
from regard.data.datasets.synthetic.phrasebook.trees import (
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    PronounPhrase,
    Question,
    Statement,
    Subordinate,
    Text,
)

LEXICON = load_lexicon()
VERBS = LEXICON.verbs
NOUNS = {noun.english: noun for nouns in LEXICON.nouns.values() for noun in nouns}
ADJECTIVES = {a.english: a for adjectives in LEXICON.adjectives.values() for a in adjectives}
PHRASES = {
    " ".join(word for group in phrase.english for word in group): phrase
    for phrases in LEXICON.phrases.values()
    for phrase in phrases
}


def pronoun(name):
    return PronounPhrase(LEXICON.pronouns[name])


def noun(determiner, english, *adjectives, is_plural=False, relative=None):
    return NounPhrase(
        NOUNS[english],
        LEXICON.determiners.get(determiner),
        is_plural,
        tuple(ADJECTIVES[adjective] for adjective in adjectives),
        relative,
    )


def clause(subject, verb, **parts):
    subject = pronoun(subject) if isinstance(subject, str) else subject
    return Clause(VERBS[verb], subject.person if subject else "he", subject, **parts)


def to(english, determiner=None):
    """Return a noun as the goal of a movement."""
    return PrepositionalPhrase(NOUNS[english].to, noun(determiner, english), is_goal=True)


def at(english, determiner=None):
    """Return a noun as a location."""
    return PrepositionalPhrase(NOUNS[english].at, noun(determiner, english))


def subordinate(conjunction, dependent):
    return Subordinate(LEXICON.conjunctions[conjunction], dependent)


def translate(statement, *more, connectives=()):
    """Return statements as an English sentence and its German translation."""
    statements = [s if isinstance(s, Statement) else Statement(s) for s in (statement, *more)]
    example = write_example(Text(tuple(statements), tuple(connectives)))
    return example.source, example.target


def translate_question(clause, word="", after=None):
    """Return a question in English and its German translation."""
    example = write_example(Question(clause, word, after))
    return example.source, example.target
