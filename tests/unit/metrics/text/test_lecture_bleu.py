import math

import pytest

from regard.core.errors import ConfigError
from regard.metrics.text.bleu import lecture_bleu, ngram_precision, sentence_bleu

PREDICTED = "A B B C D"
LABEL = "A B C D E F"


@pytest.mark.parametrize(("n", "precision"), [(1, 4 / 5), (2, 3 / 4), (3, 1 / 3), (4, 0)])
def test_precisions_of_the_lecture_example(n, precision):
    assert ngram_precision(PREDICTED.split(), LABEL.split(), n) == pytest.approx(precision)


@pytest.mark.parametrize(("k", "value"), [(2, 0.681), (3, 0.594), (4, 0.0)])
def test_value_of_the_lecture_example(k, value):
    assert lecture_bleu([PREDICTED], [[LABEL]], k=k).value == pytest.approx(value, abs=5e-4)


def test_label_word_is_matched_once():
    assert ngram_precision(["a", "a", "a"], ["a", "b"], 1) == pytest.approx(1 / 3)


def test_perfect_prediction_scores_one():
    assert sentence_bleu("a b c".split(), "a b c".split(), 2) == 1.0


def test_prediction_shorter_than_k_ends_the_product_at_its_length():
    assert sentence_bleu(["yes"], ["yes"], 4) == 1.0


def test_short_prediction_has_a_brevity_penalty():
    assert sentence_bleu(["a"], ["a", "b"], 1) == pytest.approx(math.exp(-1))


def test_long_prediction_has_no_brevity_penalty():
    assert sentence_bleu(["a", "b"], ["a"], 1) == pytest.approx(0.5**0.5)


def test_empty_prediction_scores_zero():
    assert lecture_bleu([""], [["a b"]]).value == 0.0


def test_corpus_value_is_the_mean_over_sentences():
    assert lecture_bleu(["a b", "x y"], [["a b"], ["a b"]]).value == pytest.approx(0.5)


def test_best_reference_counts():
    assert lecture_bleu(["a b"], [["x y", "a b"]]).value == 1.0


def test_signature_states_k_and_the_mean():
    assert lecture_bleu(["a"], [["a"]], k=3).signature.startswith("k:3|average:sentences")


def test_k_below_one_is_refused():
    with pytest.raises(ConfigError, match="`k` must be at least 1, but is 0"):
        lecture_bleu(["a"], [["a"]], k=0)
