import random

import pytest

from regard.core.errors import DataError
from regard.metrics.text.error_rates import cer, edit_distance, per, wer


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("", "", 0), ("flaw", "lawn", 2)],
)
def test_edit_distance_equals_known_values(first, second, distance):
    assert edit_distance(first, second) == distance


def test_edit_distance_is_symmetric():
    assert edit_distance("saturday", "sunday") == edit_distance("sunday", "saturday") == 3


def test_wer_is_edits_per_reference_word_of_the_corpus():
    # One substitution in three words and one insertion in one word: 2 edits in 4 words.
    assert wer(["a x c", "d e"], [["a b c"], ["d"]]).value == pytest.approx(50.0)


def test_cer_collapses_whitespace():
    assert cer(["ab  cd"], [["ab ce"]]).value == pytest.approx(20.0)


def test_per_counts_phones():
    assert per(["K AE T"], [["K AA T"]]).value == pytest.approx(100 / 3)


def test_per_has_its_own_name():
    assert per(["K"], [["K"]]).name == "PER"


def test_nearest_reference_counts():
    assert wer(["a b"], [["x y z", "a b"]]).value == 0.0


def test_longer_of_equally_near_references_counts():
    assert wer(["a b"], [["a", "a b c"]]).detail == {"edits": 1, "length": 3}


def test_empty_hypothesis_has_an_error_rate_of_100():
    assert wer([""], [["a b"]]).value == 100.0


def test_references_without_words_are_refused():
    with pytest.raises(DataError, match="must hold at least one word, but all are empty"):
        wer(["a"], [[""]])


@pytest.mark.parametrize(("measure", "name"), [(wer, "wer"), (cer, "cer")])
def test_rates_of_random_sentences_equal_jiwer(measure, name):
    jiwer = pytest.importorskip("jiwer", reason="jiwer is not installed")
    generator = random.Random(5)

    def sentence(least):
        words = ["a", "ab", "bab", "ba", "über"]
        return " ".join(generator.choices(words, k=generator.randint(least, 9)))

    hypotheses, references = [sentence(0) for _ in range(200)], [sentence(1) for _ in range(200)]
    wanted = 100 * getattr(jiwer, name)(references, hypotheses)
    assert measure(hypotheses, [[text] for text in references]).value == pytest.approx(wanted)
