import pytest

from regard.data.datasets.synthetic.phrasebook.german import GermanWriter
from tests.unit.data.datasets.synthetic.phrasebook.builders import VERBS, clause, noun, translate

PARADIGM = [
    ("nominative", "the", "man", False, "der alte Mann"),
    ("accusative", "the", "man", False, "den alten Mann"),
    ("dative", "the", "man", False, "dem alten Mann"),
    ("nominative", "a", "man", False, "ein alter Mann"),
    ("accusative", "a", "man", False, "einen alten Mann"),
    ("dative", "my", "man", False, "meinem alten Mann"),
    ("nominative", "the", "woman", False, "die alte Frau"),
    ("accusative", "a", "woman", False, "eine alte Frau"),
    ("dative", "the", "woman", False, "der alten Frau"),
    ("dative", "our", "woman", False, "unserer alten Frau"),
    ("nominative", "a", "child", False, "ein altes Kind"),
    ("accusative", "this", "child", False, "dieses alte Kind"),
    ("dative", "every", "child", False, "jedem alten Kind"),
    ("accusative", "the", "student", False, "den alten Studenten"),
    ("dative", "a", "neighbour", False, "einem alten Nachbarn"),
    ("nominative", "the", "child", True, "die alten Kinder"),
    ("accusative", None, "child", True, "alte Kinder"),
    ("dative", "the", "child", True, "den alten Kindern"),
    ("dative", "two", "child", True, "zwei alten Kindern"),
    ("accusative", "many", "man", True, "viele alte Männer"),
    ("dative", "this", "car", True, "diesen alten Autos"),
    ("accusative", None, "coffee", False, "alten Kaffee"),
    ("dative", None, "milk", False, "alter Milch"),
]


@pytest.mark.parametrize(("case", "determiner", "english", "is_plural", "german"), PARADIGM)
def test_articles_adjectives_and_nouns_agree(case, determiner, english, is_plural, german):
    phrase = noun(determiner, english, "old", is_plural=is_plural)
    if case == "nominative":
        written = translate(clause(phrase, "schlafen"))[1].split(" schl")[0]
        german = german[0].upper() + german[1:]
    else:
        verb = {"accusative": "sehen", "dative": "helfen"}[case]
        written = translate(clause("I", verb, object=phrase))[1].split(" ", 2)[2].removesuffix(".")
    assert written == german


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten"),
        ("lesen", "lese liest liest lesen"),
        ("fahren", "fahre fährst fährt fahren"),
        ("tanzen", "tanze tanzt tanzt tanzen"),
        ("einladen", "lade lädst lädt laden"),
        ("essen", "esse isst isst essen"),
        ("öffnen", "öffne öffnest öffnet öffnen"),
        ("wissen", "weiß weißt weiß wissen"),
    ],
)
def test_verbs_agree_with_their_subject(verb, forms):
    assert " ".join(VERBS[verb].present) == forms


def test_prepositions_take_their_case(trees):
    wrong = {
        *(("mit", article) for article in ("das", "die", "einen", "ein", "eine")),
        *(("für", article) for article in ("dem", "der", "einem", "einer")),
        *(("ohne", article) for article in ("dem", "der", "einem", "einer")),
        *(("zu", article) for article in ("dem", "der", "das", "die", "einen")),
        ("in", "dem"),
    }
    bigrams = set()
    for tree in trees:
        words = [word.text for word in GermanWriter().write(tree)]
        bigrams |= set(zip(words, words[1:], strict=False))
    assert not bigrams & wrong
