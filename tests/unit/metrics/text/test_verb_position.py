import pytest

from regard.core.errors import DataError
from regard.data.datasets.synthetic.phrasebook import generate
from regard.metrics.text.verb_position import clause_verbs, misplaced_verbs

REFERENCE = "Ich weiß, dass er das Buch liest."


@pytest.mark.parametrize(
    ("sentence", "verbs"),
    [
        (REFERENCE, ["liest"]),
        ("Weil es geregnet hat, waren wir müde.", ["hat"]),
        ("Er schläft, und weil du kochst, kommt er.", ["kochst"]),
        ("Die Männer, die du triffst, spielen Tennis, wenn sie Zeit haben.", ["triffst", "haben"]),
        ("Ich lese, und du schläfst.", []),
        ("Dass", []),
        ("", []),
    ],
)
def test_last_words_of_dependent_clauses_are_verbs(sentence, verbs):
    assert clause_verbs(sentence) == verbs


def test_interrupted_clause_is_not_counted():
    assert clause_verbs("Er kommt, obwohl ein Kind, das sie kennt, dort arbeitet.") == ["kennt"]


@pytest.mark.parametrize(
    ("output", "category"),
    [
        (REFERENCE, "in_place"),
        ("Ich glaube, dass sie ein Buch liest.", "in_place"),
        ("Ich weiß, dass er liest das Buch.", "misplaced"),
        ("Ich weiß, dass er das Buch kauft.", "missing"),
        ("", "missing"),
    ],
)
def test_verb_is_in_place_misplaced_or_missing(output, category):
    detail = misplaced_verbs([output], [REFERENCE]).detail
    assert {name for name, count in detail.items() if count} == {"verbs", category}


def test_same_word_elsewhere_in_the_reference_is_not_counted():
    reference = "Er hat geglaubt, dass sie geschlafen hat."
    detail = misplaced_verbs(["Er hat geglaubt, dass sie schläft."], [reference]).detail
    assert (detail["misplaced"], detail["missing"]) == (0, 1)


def test_value_is_the_share_of_misplaced_verbs():
    outputs = [REFERENCE, "Ich weiß, dass er liest das Buch.", REFERENCE, ""]
    assert misplaced_verbs(outputs, [REFERENCE] * 4).value == 25.0


def test_references_of_the_phrasebook_have_every_verb_in_place():
    targets = [
        example.target
        for example in generate(300)
        if "verb_last" in example.tags and clause_verbs(example.target)
    ]
    detail = misplaced_verbs(targets, targets).detail
    assert detail["in_place"] == detail["verbs"] > len(targets)


def test_references_without_a_dependent_clause_are_refused():
    with pytest.raises(DataError, match="`references` must hold a dependent clause"):
        misplaced_verbs(["Er liest."], ["Er liest."])
