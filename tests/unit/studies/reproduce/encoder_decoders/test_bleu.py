import pytest

from regard.studies.reproduce.encoder_decoders.bleu import (
    PREDICTION,
    TARGET,
    count_matches,
    standard_bleu,
)


def test_repeated_words_of_the_worked_example_count_once():
    row = count_matches(PREDICTION, TARGET, 1)
    assert (row["matched n-grams"], row["matched"], row["predicted"]) == ("A B C D", 4, 5)


def test_longest_matching_ngram_of_the_worked_example():
    assert count_matches(PREDICTION, TARGET, 3)["matched n-grams"] == "BCD"
    assert count_matches(PREDICTION, TARGET, 4)["matched n-grams"] == "none"


def test_sacrebleu_has_the_same_brevity_penalty():
    assert standard_bleu(PREDICTION, TARGET)["brevity_penalty"] == pytest.approx(0.8187, abs=1e-4)
