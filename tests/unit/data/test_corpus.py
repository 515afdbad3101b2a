import numpy as np
import pytest

from regard.data.corpus import Corpus, join, sample, without_rows
from regard.data.example import Example
from regard.data.splits import drop_overlap, split_by_source

EXAMPLES = [
    *(Example(f"source {n}\n\u2028 ü", f"target\t{n}") for n in range(40)),
    Example(("one", "two"), "t", ("other",), ((0, 1), (1, 0)), ("tag",)),
    Example("one", "no links", alignment=()),
]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    return Corpus.open("name", lambda: EXAMPLES)


def test_a_corpus_equals_the_list_of_its_examples(corpus):
    assert list(corpus) == EXAMPLES
    assert [corpus[row] for row in range(len(corpus))] == EXAMPLES
    assert corpus[-1] == EXAMPLES[-1]
    assert corpus[3:20:4] == EXAMPLES[3:20:4]


def test_an_index_beyond_the_end_is_an_error(corpus):
    with pytest.raises(IndexError):
        corpus[len(EXAMPLES)]


def test_examples_are_read_once(corpus):
    def read():
        raise AssertionError("must be read from the cache")

    assert list(Corpus.open("name", read)) == EXAMPLES


def test_examples_can_be_removed_and_added_repeatedly(corpus):
    expected, changed = EXAMPLES, corpus
    generator = np.random.default_rng(0)
    for number in range(12):
        if number % 3 == 1:
            more = [Example(f"new {number}", "t"), Example("newer", "u")]
            expected, changed = [*expected, *more], join(changed, more)
        rows = np.sort(generator.choice(len(expected), 4, replace=False))
        expected, changed = without_rows(expected, rows), without_rows(changed, rows)
        assert list(changed) == changed[:] == expected
        assert len(changed) == len(expected)
    assert list(corpus) == EXAMPLES


def test_the_digest_depends_on_the_examples(corpus):
    rows = np.array([3])
    again = Corpus.open("other", lambda: EXAMPLES)
    others = Corpus.open("third", lambda: EXAMPLES[1:])
    assert corpus.digest == again.digest == corpus.without(rows[:0]).digest
    changed = [corpus, others, corpus.without(rows), corpus + EXAMPLES[:1], corpus + EXAMPLES[1:2]]
    assert len({one.digest for one in changed}) == len(changed)


def test_values_of_examples_are_computed_once(corpus):
    num_computed = []

    def compute(examples):
        num_computed.append(len(examples))
        return np.array([len(example.target) for example in examples])

    changed = corpus.without(np.array([0, 41])) + [Example("new", "four")]
    expected = [len(example.target) for example in changed]
    assert changed.array("lengths", compute).tolist() == expected
    assert changed.array("lengths", compute).tolist() == expected
    assert num_computed == [len(EXAMPLES), 1, 1]


def test_a_sample_is_evenly_spaced(corpus, caplog):
    caplog.set_level("INFO")
    changed = corpus.without(np.array([1])) + EXAMPLES[:1]
    assert sample(changed, 10, "Tokens are fitted") == changed[::5]
    assert "Tokens are fitted to 9 of 42 examples." in caplog.text
    assert sample(changed, 42) is changed
    assert sample(EXAMPLES, 10) is EXAMPLES


@pytest.mark.parametrize("seed", [0, 1])
def test_a_corpus_is_split_like_a_list(corpus, seed):
    corpus = Corpus.open("twice", lambda: EXAMPLES * 2)
    ours = split_by_source(corpus, seed=seed, valid_share=0.1, test_share=0.2)
    theirs = split_by_source(EXAMPLES * 2, seed=seed, valid_share=0.1, test_share=0.2)
    assert isinstance(ours.train, Corpus)
    assert (list(ours.train), ours.valid, ours.test) == (theirs.train, theirs.valid, theirs.test)
    assert ours.note == theirs.note


def test_overlap_with_held_out_sources_is_dropped_from_a_corpus(corpus):
    held_out = [Example("  SOURCE 7 \u2028 ü", "t"), Example(("one", "two"), "x")]
    kept, num_dropped = drop_overlap(corpus, held_out)
    assert (list(kept), num_dropped) == ([*EXAMPLES[:7], *EXAMPLES[8:40], EXAMPLES[41]], 2)
