import pytest

from regard.core.errors import ConfigError
from regard.data.datasets.synthetic.phrasebook import generate
from regard.data.datasets.synthetic.phrasebook.meanings import sample_role_swaps


@pytest.fixture(scope="module")
def turned():
    return sample_role_swaps(12, seed=3)


def words(sentence):
    return sorted(sentence.lower().rstrip(".").split())


def test_all_four_sentences_differ_and_have_the_same_words(turned):
    assert len(turned) == 12
    for one in turned:
        assert len(set(one.sentences)) == 4
        assert len({tuple(words(sentence)) for sentence in one.sentences}) == 1


def test_time_moves_to_the_front_and_the_rest_stays_in_order(turned):
    for last, first in (pair for one in turned for pair in (one.original, one.swapped)):
        there, here = (s.lower().rstrip(".").split() for s in (last, first))
        cuts = [here[cut:] + here[:cut] for cut in range(1, len(here))]
        assert there in cuts


def test_like_meaning_has_one_translation_and_unlike_meaning_another(turned):
    for one in turned:
        last, first, other_last, other_first = (example.target for example in one.examples)
        assert last == first and other_last == other_first and last != other_last
        assert [example.source for example in one.examples] == list(one.sentences)


def test_translation_is_the_one_of_the_phrasebook():
    known = {example.source: example.target for example in generate(3000, seed=3)}
    common = [
        (example.target, known[example.source])
        for one in sample_role_swaps(60, seed=3)
        for example in (one.examples[0], one.examples[2])
        if example.source in known
    ]
    assert common
    assert all(ours == theirs for ours, theirs in common)


def test_same_seed_gives_the_same_sentences_and_more_begin_with_them(turned):
    assert sample_role_swaps(4, seed=3) == turned[:4]
    assert sample_role_swaps(4, seed=4) != turned[:4]


def test_sentences_that_were_seen_are_not_drawn(turned):
    seen = {turned[0].swapped[1]}
    assert turned[0] not in sample_role_swaps(12, seed=3, exclude=seen)


def test_sentences_are_short(turned):
    assert all(len(one.original[0].split()) <= 10 for one in turned)


def test_number_below_zero_is_refused():
    with pytest.raises(ConfigError, match="`num` must be at least 0, but is -1"):
        sample_role_swaps(-1)
