import random

import pytest

from regard.core.errors import DataError
from regard.data.text.word_aligner import align_words

LEXICON = {"the": "das", "house": "Haus", "book": "Buch", "is": "ist", "small": "klein"}
TEXTS = ["the house", "the book", "the house is small", "the book is small", "is the house small"]


def pair(text):
    source = text.split()
    return source, [LEXICON[word] for word in source]


def test_words_that_occur_together_are_linked():
    assert align_words([pair(text) for text in TEXTS])[2] == ((0, 0), (1, 1), (2, 2), (3, 3))


def test_shuffled_words_are_linked():
    generator = random.Random(0)
    pairs, gold = [], []
    for _ in range(100):
        source = generator.sample(sorted(LEXICON), k=3)
        order = generator.sample(range(3), k=3)
        pairs.append((source, [LEXICON[source[index]] for index in order]))
        gold.append({(index, position) for position, index in enumerate(order)})
    found = align_words(pairs)
    assert sum(len(gold[row] & set(links)) for row, links in enumerate(found)) > 0.9 * 3 * 100


def test_each_target_word_has_at_most_one_link():
    links = align_words([(["a"], ["x", "y", "z"]), (["a", "b"], ["x", "w"])])
    assert all(len({j for _, j in pair}) == len(pair) for pair in links)


def test_pairs_with_an_empty_side_have_no_links():
    assert align_words([([], ["x"]), (["a"], []), (["a"], ["x"])])[:2] == [(), ()]


def test_pairs_without_any_target_word_are_refused():
    with pytest.raises(DataError, match="at least one target word"):
        align_words([(["a"], [])])
