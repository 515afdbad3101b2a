from regard.metrics.text.error_rates import UNITS, characters
from regard.metrics.text.ngrams import ngrams


def test_blanks_between_words_are_one_character_and_none_at_the_ends():
    assert characters("  ab   c ") == ["a", "b", " ", "c"]


def test_words_stand_between_blanks():
    assert UNITS["word"](" K  AE1 T ") == ["K", "AE1", "T"]


def test_runs_are_counted_in_their_order():
    assert ngrams("a b a b".split(), 2) == {("a", "b"): 2, ("b", "a"): 1}


def test_no_run_is_longer_than_its_text():
    assert not ngrams(["a"], 2)
