import math

import numpy as np
import pytest

from regard.metrics.representation.vectors import BagOfWords, cosines, shared_words


def test_weight_is_term_frequency_times_inverse_document_frequency():
    bag = BagOfWords(["a b", "a c", "a"])
    vectors = bag(["a b b d"])
    idf = [math.log(4 / (1 + count)) + 1 for count in (3, 1, 0)]  # a, b, d
    np.testing.assert_allclose(vectors, [[idf[0], 2 * idf[1], idf[2]]])


def test_order_case_and_punctuation_are_ignored():
    first, second = BagOfWords(["x"])(["The dog sees Tom.", "tom sees the dog!"])
    np.testing.assert_array_equal(first, second)


def test_texts_that_share_rare_words_are_more_similar():
    bag = BagOfWords(["the dog", "the cat", "the hen", "the fox"])
    vectors = bag(["the dog", "a dog", "the cat"])
    similar = cosines(vectors, vectors)
    assert similar[0, 1] > similar[0, 2] > 0


@pytest.mark.parametrize(
    ("left", "right", "share"),
    [("a b", "b c", 1 / 3), ("A.", "a", 1.0), ("a", "b", 0.0), ("", "", 0.0)],
)
def test_jaccard_similarity_counts_each_word_once(left, right, share):
    assert shared_words(left, right) == pytest.approx(share)
