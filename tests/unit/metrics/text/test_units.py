from regard.metrics.text.error_rates import UNITS, characters
from regard.metrics.text.ngrams import ngrams


def test_whitespace_is_collapsed_and_stripped():
    assert characters("  ab   c ") == ["a", "b", " ", "c"]


def test_words_are_separated_by_whitespace():
    assert UNITS["word"](" K  AE1 T ") == ["K", "AE1", "T"]


def test_ngrams_are_counted_in_order():
    assert ngrams("a b a b".split(), 2) == {("a", "b"): 2, ("b", "a"): 1}


def test_ngrams_longer_than_the_text_are_empty():
    assert not ngrams(["a"], 2)
