import pytest

from regard.data.example import Example
from regard.metrics.text.verb_position import clause_verbs, misplaced_verbs
from regard.studies.reproduce.applications.verb_position import (
    VERBS,
    WordTranslation,
    sample_sentences,
)


@pytest.fixture(scope="module")
def sentences():
    return sample_sentences(400, 1)


def test_sentences_are_different(sentences):
    assert len({example.source for example in sentences}) == 400
    assert sentences == sample_sentences(400, 1)


def test_dependent_clauses_end_in_their_verb(sentences):
    for example in sentences:
        (verb,) = clause_verbs(example.target)
        assert verb in VERBS.values()


def test_references_have_no_misplaced_verbs(sentences):
    targets = [example.target for example in sentences]
    assert misplaced_verbs(targets, targets).value == 0


def test_main_clause_starts_with_its_verb_after_a_dependent_clause(sentences):
    inverted = [one.target for one in sentences if not one.target.startswith(("d", "ein "))]
    assert inverted
    for target in inverted:
        assert target.split(" , ")[1].split()[0] in VERBS.values()


def test_word_translation_aligns_by_co_occurrence():
    pairs = [("the dog", "der Hund"), ("the cat", "die Katze"), ("a dog", "ein Hund")]
    words = WordTranslation.fit([Example(*pair) for pair in pairs])
    assert words.best["dog"] == "Hund"
    assert words.translate("dog unknown") == "Hund unknown"


def test_word_translation_keeps_the_english_order(sentences):
    words = WordTranslation.fit(sentences)
    assert {verb: words.best[verb] for verb in VERBS} == VERBS
    assert words.translate("when the child reads the letter").split()[3] == "liest"
    outputs = [words.translate(one.source) for one in sentences]
    assert misplaced_verbs(outputs, [one.target for one in sentences]).value > 50
