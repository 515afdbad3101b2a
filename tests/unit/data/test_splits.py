from statistics import mean

import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.data.splits import (
    drop_overlap,
    expand_references,
    merge_references,
    split_by_source,
)

EXAMPLES = [Example(f"sentence {i // 3}", f"Satz {i}") for i in range(600)]

SORTED = [Example("x" * i, "y") for i in range(1, 1001)]


def sources(examples):
    return {example.source for example in examples}


def test_no_source_is_in_two_parts():
    splits = split_by_source(EXAMPLES)
    train, valid, test = map(sources, (splits.train, splits.valid, splits.test))
    assert not (train & valid or train & test or valid & test)


def test_every_example_is_in_one_part():
    splits = split_by_source(EXAMPLES)
    whole = [*splits.train, *splits.valid, *splits.test]
    assert sorted(example.target for example in whole) == sorted(e.target for e in EXAMPLES)


def test_shares_are_kept():
    splits = split_by_source(EXAMPLES, valid_share=0.1, test_share=0.2)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (420, 60, 120)


def test_held_out_parts_have_at_most_max_examples():
    splits = split_by_source(EXAMPLES, max_examples=10)
    assert (len(splits.valid), len(splits.test)) == (9, 9)


def test_ten_examples_give_one_to_each_held_out_part():
    splits = split_by_source([Example(str(i), "x") for i in range(10)])
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (8, 1, 1)


def test_sources_with_more_examples_than_the_share_are_still_held_out():
    splits = split_by_source([Example(str(i % 10), "x") for i in range(100)], max_examples=1)
    assert (len(splits.valid), len(splits.test)) == (10, 10)


def test_the_same_seed_gives_the_same_split():
    assert split_by_source(EXAMPLES, seed=3) == split_by_source(EXAMPLES, seed=3)


def test_another_seed_gives_another_split():
    one, two = split_by_source(EXAMPLES, seed=3), split_by_source(EXAMPLES, seed=4)
    assert sources(one.test) != sources(two.test)


def test_the_order_of_the_examples_does_not_matter():
    forwards, backwards = split_by_source(EXAMPLES), split_by_source(EXAMPLES[::-1])
    assert sources(forwards.test) == sources(backwards.test)


def test_held_out_examples_of_a_sorted_file_are_not_sorted():
    lengths = [len(example.source) for example in split_by_source(SORTED).test]
    first, last = lengths[: len(lengths) // 2], lengths[len(lengths) // 2 :]
    assert lengths != sorted(lengths)
    assert abs(mean(first) - mean(last)) < 0.2 * mean(lengths)


def test_the_split_is_the_same_on_every_machine():
    splits = split_by_source([Example(str(i), "x") for i in range(20)])
    assert [splits.valid[0].source, splits.test[0].source] == ["14", "15"]


def test_sources_that_differ_in_case_whitespace_or_unicode_form_are_equal():
    variants = [Example(s, "x") for s in ("Über  uns", "über uns ", "U\u0308ber uns")]
    kept, num_dropped = drop_overlap([*variants, Example("Über", "x")], [Example("über uns", "y")])
    assert (kept, num_dropped) == ([Example("Über", "x")], 3)


def test_the_note_counts_every_part():
    assert split_by_source(EXAMPLES).note == (
        "split by source side: 540 train, 30 valid, 30 test; no source is shared"
    )


def test_too_few_sources_cannot_be_split():
    message = "at least 10 distinct sources, but there are 9"
    with pytest.raises(DataError, match=message):
        split_by_source([Example(str(i % 9), "x") for i in range(90)])


@pytest.mark.parametrize("name", ["valid_share", "test_share"])
def test_a_held_out_share_has_a_maximum(name):
    with pytest.raises(ConfigError, match=rf"`{name}` must be between 0.0 and 0.4, but is 0.9\."):
        split_by_source(EXAMPLES, **{name: 0.9})


def test_max_examples_is_at_least_one():
    with pytest.raises(ConfigError, match=r"`max_examples` must be at least 1, but is 0\."):
        split_by_source(EXAMPLES, max_examples=0)


def test_equal_sources_become_one_example_with_distinct_references():
    examples = [
        Example("b", "1", references=("2",), alignment=((0, 0),), tags=("t",)),
        Example("a", "1"),
        Example("b", "3", references=("1",)),
        Example("B", "4"),
        Example("b", "2"),
    ]
    assert merge_references(examples) == [
        Example("b", "1", references=("2", "3"), alignment=((0, 0),), tags=("t",)),
        Example("a", "1"),
        Example("B", "4"),
    ]


def test_sources_of_several_texts_are_merged():
    examples = [Example(("a", "b"), "1"), Example(("a", "c"), "2"), Example(("a", "b"), "3")]
    assert merge_references(examples)[0] == Example(("a", "b"), "1", references=("3",))


def test_every_reference_becomes_an_example():
    example = Example("b", "1", references=("2", "3"), alignment=((0, 0),), tags=("t",))
    assert expand_references([example, Example("a", "1")]) == [
        Example("b", "1", alignment=((0, 0),), tags=("t",)),
        Example("b", "2", tags=("t",)),
        Example("b", "3", tags=("t",)),
        Example("a", "1"),
    ]


def test_merging_undoes_expanding():
    merged = merge_references(EXAMPLES)
    assert len(merged) == 200
    assert expand_references(merged) == EXAMPLES
    assert merge_references(expand_references(merged)) == merged
