"""Code and documents use standard terms."""

import pytest

from tests.architecture.vocabulary import find_hits, hits_of_line


def test_no_banned_word_in_code_or_documents():
    hits = [f"{hit.path}:{hit.line}: {hit.word!r}, write {hit.instead}" for hit in find_hits()]
    assert hits == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("def place_of(token): ...", ["place"]),
        ("class SpoiltText: ...", ["spoilt"]),
        ('"""What a batch costs."""', ["What", "what a batch costs"]),
        ("tensor.add_(1)  # in place, with decimal places", []),
        ("from torch import eye; torch.eye(3); 'Show, attend and tell'", ["eye"]),
        ("The journal.jsonl file of a run; sentencepiece; soundfile", []),
    ],
)
def test_words_in_names_and_text_are_found(line, words):
    assert [hit.word for hit in hits_of_line("regard/models/x.py", 1, line)] == words


def test_grammatical_terms_are_allowed_where_sentences_are_generated():
    path = "regard/data/datasets/synthetic/phrasebook/grammar.py"
    assert not [*hits_of_line(path, 1, "verb = lexicon.verbs[0]")]
    assert [*hits_of_line("regard/cli/main.py", 1, "verb = names[0]")]
