import pytest

from regard.core.errors import ConfigError
from regard.data.datasets.synthetic.phrasebook import generate
from regard.data.datasets.synthetic.phrasebook.meanings import sample_role_swaps


@pytest.fixture(scope="module")
def swaps():
    return sample_role_swaps(12, seed=3)


def words(sentence):
    return sorted(sentence.lower().rstrip(".").split())


def test_four_sentences_differ_and_have_the_same_words(swaps):
    assert len(swaps) == 12
    for swap in swaps:
        assert len(set(swap.sentences)) == 4
        assert len({tuple(words(sentence)) for sentence in swap.sentences}) == 1


def test_time_is_moved_to_the_front(swaps):
    for last, first in (pair for swap in swaps for pair in (swap.original, swap.swapped)):
        time_last, time_first = (s.lower().rstrip(".").split() for s in (last, first))
        rotations = [time_first[cut:] + time_first[:cut] for cut in range(1, len(time_first))]
        assert time_last in rotations


def test_equal_meanings_share_a_translation_and_swapped_ones_differ(swaps):
    for swap in swaps:
        last, first, other_last, other_first = (example.target for example in swap.examples)
        assert last == first and other_last == other_first and last != other_last
        assert [example.source for example in swap.examples] == list(swap.sentences)


def test_translations_equal_those_of_the_phrasebook():
    known = {example.source: example.target for example in generate(3000, seed=3)}
    common = [
        (example.target, known[example.source])
        for swap in sample_role_swaps(60, seed=3)
        for example in (swap.examples[0], swap.examples[2])
        if example.source in known
    ]
    assert common
    assert all(actual == expected for actual, expected in common)


def test_larger_number_extends_the_list_of_a_seed(swaps):
    assert sample_role_swaps(4, seed=3) == swaps[:4]
    assert sample_role_swaps(4, seed=4) != swaps[:4]


def test_excluded_sentences_are_not_sampled(swaps):
    excluded = {swaps[0].swapped[1]}
    assert swaps[0] not in sample_role_swaps(12, seed=3, exclude=excluded)


def test_sentences_are_short(swaps):
    assert all(len(swap.original[0].split()) <= 10 for swap in swaps)


def test_negative_number_raises():
    with pytest.raises(ConfigError, match="`num` must be at least 0, but is -1"):
        sample_role_swaps(-1)
