from random import Random

import pytest

from regard.core.errors import ConfigError
from regard.data.datasets.loading import assign_part
from regard.data.datasets.synthetic.phrasebook import (
    MAX_WORDS,
    TAGS,
    generate,
    splits,
    write_example,
)
from regard.data.datasets.synthetic.phrasebook.english import write_english
from regard.data.datasets.synthetic.phrasebook.german import GermanWriter
from regard.data.datasets.synthetic.phrasebook.grammar import Grammar
from regard.data.datasets.synthetic.phrasebook.trees import Statement, Text, write_sentence
from regard.data.text.tokenizers import split_words
from tests.unit.data.datasets.synthetic.phrasebook.builders import LEXICON, clause, noun


def test_every_tag_occurs(examples):
    assert {tag for example in examples for tag in example.tags} == set(TAGS)


@pytest.mark.parametrize(
    ("sentence", "tags"),
    [
        (clause("I", "aufstehen"), {"pronoun", "separable"}),
        (clause(noun("the", "dog", is_plural=True), "schlafen"), {"plural"}),
        (
            clause(noun(None, "Anna"), "haben", object=noun("two", "cat", is_plural=True)),
            {"plural", "number", "accusative"},
        ),
    ],
)
def test_tags_are_the_phenomena_of_the_sentence(sentence, tags):
    assert set(write_example(Text((Statement(sentence),))).tags) == tags


def test_same_seed_gives_the_same_pairs():
    assert generate(200, seed=5) == generate(200, seed=5)


def test_another_seed_gives_other_pairs():
    assert generate(200, seed=5) != generate(200, seed=6)


def test_larger_number_extends_the_same_list(examples):
    assert generate(100, seed=7) == examples[:100]


def test_sources_are_distinct(examples):
    assert len({example.source for example in examples}) == len(examples)


def test_english_sentence_determines_the_translation():
    grammar = Grammar(LEXICON, Random(3))
    known = {}
    for _ in range(20_000):
        tree = grammar.sample()
        source = write_sentence(write_english(tree))
        # Only repeated sentences can differ, and long ones are rarely repeated.
        if len(source) < 60:
            target = write_sentence(GermanWriter().write(tree))
            assert known.setdefault(source, target) == target


def test_grammar_has_more_than_100000_sentences():
    # Two samples of n from N sentences share about n²/N of them, or more if some sentences are
    # more likely than others, so this is a lower estimate.
    first = {example.source for example in generate(3_000, seed=1)}
    second = {example.source for example in generate(3_000, seed=2)}
    assert len(first) * len(second) / max(1, len(first & second)) > 100_000


def test_sentences_start_with_a_capital_and_end_with_punctuation(examples):
    for example in examples:
        for text in (example.source, example.target):
            assert text[0].isupper() and text[-1] in ".?"


def test_most_sentences_are_short(examples):
    lengths = [len(example.source.split()) for example in examples]
    assert sum(4 <= length <= 15 for length in lengths) / len(lengths) > 0.65


def test_some_sentences_are_long(examples):
    lengths = [len(example.source.split()) for example in examples]
    assert 0.15 < sum(length > 20 for length in lengths) / len(lengths) < 0.2


def test_longest_sentence_is_close_to_the_limit(examples):
    assert MAX_WORDS - 5 < max(len(e.source.split()) for e in examples) <= MAX_WORDS


def test_vocabularies_are_small(examples):
    english = {word for example in examples for word in split_words(example.source.lower())}
    german = {word for example in examples for word in split_words(example.target.lower())}
    assert 300 < len(english) < 500
    assert 600 < len(german) < 850


def test_splits_have_the_given_sizes():
    parts = splits(num_train=300, num_valid=20, num_test=30)
    assert [len(part) for part in parts] == [300, 20, 30]


def test_splits_share_no_source_even_between_seeds():
    first = splits(num_train=1_500, num_valid=50, num_test=100, seed=0)
    second = splits(num_train=1_500, num_valid=50, num_test=100, seed=1)
    sources = [
        {e.source for e in a} | {e.source for e in b} for a, b in zip(first, second, strict=True)
    ]
    train, valid, test = sources
    assert not (train & valid or train & test or valid & test)


def test_test_split_does_not_depend_on_other_sizes():
    _, _, test = splits(num_train=500, num_valid=10, num_test=20)
    assert splits(num_train=0, num_valid=0, num_test=20) == ([], [], test)


def test_split_of_a_sentence_does_not_change_between_versions():
    assert assign_part("I would like to learn German.", valid=3, test=6) == 0


def test_splits_of_size_zero_are_empty():
    assert splits(num_train=0, num_valid=0, num_test=0) == ([], [], [])


@pytest.mark.parametrize("name", ["num_train", "num_valid", "num_test"])
def test_negative_size_raises(name):
    with pytest.raises(ConfigError, match=f"`{name}` must be at least 0, but is -1."):
        splits(**{name: -1})


def test_negative_number_of_pairs_raises():
    with pytest.raises(ConfigError, match="`num` must be at least 0, but is -2."):
        generate(-2)
