from datetime import date

import pytest

from regard.core.errors import ConfigError
from regard.data.datasets.synthetic.toys import (
    TOYS,
    add,
    copy,
    dates,
    generate_by_length,
    numbers,
    reverse,
    sort,
)


@pytest.mark.parametrize("name", TOYS)
def test_same_seed_gives_the_same_examples(name):
    assert TOYS[name](50, seed=3) == TOYS[name](50, seed=3)


@pytest.mark.parametrize("name", TOYS)
def test_another_seed_gives_other_examples(name):
    assert TOYS[name](50, seed=3) != TOYS[name](50, seed=4)


@pytest.mark.parametrize("name", TOYS)
def test_sources_are_distinct(name):
    examples = TOYS[name](300, seed=0)
    assert len({example.source for example in examples}) == 300


@pytest.mark.parametrize("name", TOYS)
def test_negative_number_of_examples_raises(name):
    with pytest.raises(ConfigError, match="`num` must be at least 0, but is -1."):
        TOYS[name](-1)


@pytest.mark.parametrize("name", ["copy", "reverse", "sort"])
def test_lengths_are_within_limits(name):
    lengths = {len(e.source.split()) for e in TOYS[name](300, limits=(2, 4))}
    assert lengths == {2, 3, 4}


def test_copy_repeats_its_source():
    assert all(example.target == example.source for example in copy(20))


def test_reverse_reverses_its_source():
    assert all(e.target.split() == e.source.split()[::-1] for e in reverse(20))


@pytest.mark.parametrize("task", [copy, reverse])
def test_alignment_links_equal_tokens(task):
    for example in task(20):
        source, target = example.source.split(), example.target.split()
        assert [source[i] for i, _ in example.alignment] == [
            target[j] for _, j in example.alignment
        ]


@pytest.mark.parametrize("task", [copy, reverse])
def test_alignment_is_one_to_one(task):
    for example in task(20):
        positions = list(range(len(example.source.split())))
        assert [i for i, _ in example.alignment] == positions
        assert sorted(j for _, j in example.alignment) == positions


def test_sort_sorts_the_digits():
    assert all(e.target.split() == sorted(e.source.split()) for e in sort(20))


def test_target_of_add_is_the_sum():
    for example in add(50):
        first, second = example.source.replace(" ", "").split("+")
        assert int(example.target.replace(" ", "")) == int(first) + int(second)


def test_add_respects_maximum_number_of_digits():
    summands = [s for e in add(50, limits=(1, 2)) for s in e.source.split(" + ")]
    assert max(len(summand.split()) for summand in summands) == 2


@pytest.mark.parametrize("max_digits", [3, 8])
def test_digit_limits_apply_to_the_longer_number_of_a_sum(max_digits):
    lengths = {
        max(len(summand.split()) for summand in example.source.split(" + "))
        for example in add(200, limits=(2, max_digits))
    }
    assert lengths == set(range(2, max_digits + 1))


def test_target_of_numbers_is_in_words():
    examples = {example.source: example.target for example in numbers(1_000, limits=(1, 3))}
    assert examples["1 2 3"] == "one hundred and twenty-three"


def test_numbers_respect_default_digit_limits():
    lengths = {len(example.source.split()) for example in numbers(3_000)}
    assert lengths == {1, 2, 3, 4, 5, 6}


def test_all_numbers_are_generated():
    examples = {int(example.source.replace(" ", "")) for example in numbers(1_000, limits=(1, 3))}
    assert examples == set(range(1_000))


def test_short_numbers_remain_for_training():
    lengths = [len(example.source.split()) for example in numbers(5_000, seed=1)[1_000:]]
    assert lengths.count(1) >= 3 and lengths.count(2) >= 40


def test_too_many_digits_raise():
    with pytest.raises(ConfigError, match="`max_digits` must be between 1 and 36, but is 37."):
        numbers(1, limits=(1, 37))


def test_dates_are_valid():
    assert all(date.fromisoformat(example.target) for example in dates(200))


def test_dates_have_all_formats():
    examples = {example.source: example.target for example in dates(3_000, seed=1)}
    formats = {
        ("," in source, "/" in source, "." in source, source.split("/")[0].isdigit())
        for source in examples
    }
    assert len(formats) == 4


def test_numeric_dates_have_the_day_first():
    examples = [e for e in dates(500) if e.source.count("/") == 2 and e.source[3].isdigit()]
    assert all("-".join(e.source.split("/")[::-1]) == e.target for e in examples)
    assert examples


def test_minimum_length_above_maximum_raises():
    with pytest.raises(ConfigError, match="`max_length` must be at least 5, but is 4."):
        copy(1, limits=(5, 4))


def test_length_of_zero_raises():
    with pytest.raises(ConfigError, match="`min_length` must be at least 1, but is 0."):
        sort(1, limits=(0, 12))


def test_zero_digits_raise():
    with pytest.raises(ConfigError, match="`max_digits` must be at least 1, but is 0."):
        add(1, limits=(1, 0))


def test_more_examples_than_exist_raise():
    with pytest.raises(ConfigError, match="`num` .* is 27 and only 26"):
        copy(27, limits=(1, 1))


@pytest.mark.parametrize("first, last", [(2000, 1999), (2000, 10_000)])
def test_invalid_last_year_raises(first, last):
    with pytest.raises(
        ConfigError, match=f"`last_year` must be between 2000 and 9999, but is {last}"
    ):
        dates(1, limits=(first, last))


def test_invalid_first_year_raises():
    with pytest.raises(
        ConfigError, match="`first_year` must be between 1000 and 9999, but is 999."
    ):
        dates(1, limits=(999, 2049))


@pytest.mark.parametrize("name", TOYS)
def test_default_limits_are_used(name):
    task = TOYS[name]
    assert task(50, seed=2, limits=task.limits) == task(50, seed=2)


LENGTHS = {
    "copy": lambda source: len(source.split()),
    "reverse": lambda source: len(source.split()),
    "sort": lambda source: len(source.split()),
    "add": lambda source: max(len(summand.split()) for summand in source.split("+")),
    "numbers": lambda source: len(source.split()),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_generated_sources_have_the_given_length(name):
    examples = generate_by_length(name, lengths=[6, 15], num=30, seed=0)
    assert {
        length: {LENGTHS[name](e.source) for e in part} for length, part in examples.items()
    } == {
        6: {6},
        15: {15},
    }
    assert all(len({e.source for e in part}) == 30 for part in examples.values())


def test_length_of_a_date_is_the_first_of_ten_years():
    examples = generate_by_length("dates", lengths=[2050, 2065], num=200, seed=0)
    years = {year: {int(e.target[:4]) for e in part} for year, part in examples.items()}
    assert years == {2050: set(range(2050, 2060)), 2065: set(range(2065, 2075))}


def test_long_sources_do_not_start_with_short_ones():
    examples = generate_by_length("copy", lengths=[10, 11], num=50, seed=0)
    short = {example.source for example in examples[10]}
    assert not any(example.source[:19] in short for example in examples[11])


@pytest.mark.parametrize("name", TOYS)
def test_sources_by_length_depend_on_the_seed(name):
    lengths = [2100] if name == "dates" else [9]
    first, again = (generate_by_length(name, lengths=lengths, num=20, seed=1) for _ in range(2))
    assert first == again
    assert first != generate_by_length(name, lengths=lengths, num=20, seed=2)


def test_unknown_task_raises_with_suggestion():
    with pytest.raises(ConfigError, match=r"`name` must be one of .* Did you mean 'reverse'\?"):
        generate_by_length("revers", lengths=[3], num=1, seed=0)
