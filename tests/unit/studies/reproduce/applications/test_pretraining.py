import random

import pytest

from regard.studies.reproduce.applications.pretraining import (
    ADJECTIVES,
    NUM_LABELLED_ADJECTIVES,
    NUM_LABELLED_VERBS,
    SEEN,
    UNSEEN,
    VERBS,
    sample_review,
    write_data,
)


def sentiment_words(text):
    return {
        polarity: set(text.split()) & {*ADJECTIVES[polarity], *VERBS[polarity]}
        for polarity in ADJECTIVES
    }


@pytest.mark.parametrize("polarity", ADJECTIVES)
def test_reviews_have_words_of_one_polarity(polarity):
    words = random.Random(1)
    for _ in range(50):
        text = sample_review(polarity, words, (slice(None), slice(None)))
        found = sentiment_words(text)
        assert found.pop(polarity)
        assert not any(found.values())


def test_words_without_labels_are_only_in_unlabelled_texts(tmp_path):
    tests = write_data(tmp_path, 1)
    labelled = set((tmp_path / "train.jsonl").read_text().replace('"', " ").split())
    unlabelled = set((tmp_path / "texts.txt").read_text().split())
    for polarity in ADJECTIVES:
        rest = {
            *ADJECTIVES[polarity][NUM_LABELLED_ADJECTIVES:],
            *VERBS[polarity][NUM_LABELLED_VERBS:],
        }
        assert not rest & labelled
        assert rest <= unlabelled
    for name, is_seen in ((SEEN, True), (UNSEEN, False)):
        for example in tests[name]:
            (word, *_) = sentiment_words(example.source)[example.target]
            assert (word in labelled) == is_seen
