from random import Random

import pytest

from regard.studies.reproduce.encoder_decoders.ngram_counts import PRIOR, Counts

START, END = 0, 1
ROWS = [[START, 2, 3, END], [START, 2, 2, END]]
COUNTS = Counts.of(ROWS, vocab_size=4)


def test_start_token_is_not_predicted():
    assert COUNTS.words == {2: 3, 3: 1, END: 2}


def test_distributions_sum_to_one():
    assert sum(COUNTS.unigram(token) for token in range(4)) == pytest.approx(1)
    assert sum(COUNTS.bigram(token, 2) for token in range(4)) == pytest.approx(1)


def test_bigram_is_count_and_prior():
    assert COUNTS.bigram(2, START) == pytest.approx((2 + PRIOR * 0.4) / (2 + PRIOR))


def test_bigram_samples_have_pairs_of_the_text_only():
    random = Random(1)
    for _ in range(20):
        tokens = COUNTS.sample(start=START, end=END, is_bigram=True, random=random)
        assert all(pair in COUNTS.pairs for pair in zip([START, *tokens], tokens, strict=False))
