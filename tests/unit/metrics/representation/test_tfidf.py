import math

import numpy as np
import pytest

from regard.metrics.representation.vectors import BagOfWords, cosines, shared_words


def test_word_weighs_its_count_times_how_rare_it_is():
    bag = BagOfWords(["a b", "a c", "a"])
    vectors = bag(["a b b d"])
    idf = [math.log(4 / (1 + count)) + 1 for count in (3, 1, 0)]  # a, b, d
    np.testing.assert_allclose(vectors, [[idf[0], 2 * idf[1], idf[2]]])


def test_order_case_and_punctuation_do_not_count():
    first, second = BagOfWords(["x"])(["The dog sees Tom.", "tom sees the dog!"])
    np.testing.assert_array_equal(first, second)


def test_text_of_rare_words_in_common_is_nearer():
    bag = BagOfWords(["the dog", "the cat", "the hen", "the fox"])
    vectors = bag(["the dog", "a dog", "the cat"])
    similar = cosines(vectors, vectors)
    assert similar[0, 1] > similar[0, 2] > 0


@pytest.mark.parametrize(
    ("left", "right", "share"),
    [("a b", "b c", 1 / 3), ("A.", "a", 1.0), ("a", "b", 0.0), ("", "", 0.0)],
)
def test_shared_words_are_counted_once(left, right, share):
    assert shared_words(left, right) == pytest.approx(share)
