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
def test_a_seed_gives_always_the_same_examples(name):
    assert TOYS[name](50, seed=3) == TOYS[name](50, seed=3)


@pytest.mark.parametrize("name", TOYS)
def test_another_seed_gives_other_examples(name):
    assert TOYS[name](50, seed=3) != TOYS[name](50, seed=4)


@pytest.mark.parametrize("name", TOYS)
def test_no_source_comes_twice(name):
    examples = TOYS[name](300, seed=0)
    assert len({example.source for example in examples}) == 300


@pytest.mark.parametrize("name", TOYS)
def test_fewer_than_no_examples_are_refused(name):
    with pytest.raises(ConfigError, match="`num` must be at least 0, but is -1."):
        TOYS[name](-1)


@pytest.mark.parametrize("name", ["copy", "reverse", "sort"])
def test_lengths_stay_within_their_limits(name):
    lengths = {len(e.source.split()) for e in TOYS[name](300, limits=(2, 4))}
    assert lengths == {2, 3, 4}


def test_copy_repeats_its_source():
    assert all(example.target == example.source for example in copy(20))


def test_reverse_reads_its_source_backwards():
    assert all(e.target.split() == e.source.split()[::-1] for e in reverse(20))


@pytest.mark.parametrize("task", [copy, reverse])
def test_gold_links_join_equal_tokens(task):
    for example in task(20):
        source, target = example.source.split(), example.target.split()
        assert [source[i] for i, _ in example.alignment] == [
            target[j] for _, j in example.alignment
        ]


@pytest.mark.parametrize("task", [copy, reverse])
def test_gold_links_are_one_to_one(task):
    for example in task(20):
        positions = list(range(len(example.source.split())))
        assert [i for i, _ in example.alignment] == positions
        assert sorted(j for _, j in example.alignment) == positions


def test_sort_puts_the_same_digits_in_order():
    assert all(e.target.split() == sorted(e.source.split()) for e in sort(20))


def test_add_writes_the_sum():
    for example in add(50):
        first, second = example.source.replace(" ", "").split("+")
        assert int(example.target.replace(" ", "")) == int(first) + int(second)


def test_add_keeps_to_its_digits():
    sides = [side for e in add(50, limits=(1, 2)) for side in e.source.split(" + ")]
    assert max(len(side.split()) for side in sides) == 2


@pytest.mark.parametrize("max_digits", [3, 8])
def test_the_longer_number_of_a_sum_keeps_to_its_digits(max_digits):
    lengths = {
        max(len(side.split()) for side in example.source.split(" + "))
        for example in add(200, limits=(2, max_digits))
    }
    assert lengths == set(range(2, max_digits + 1))


def test_numbers_are_written_in_words():
    found = {example.source: example.target for example in numbers(1_000, limits=(1, 3))}
    assert found["1 2 3"] == "one hundred and twenty-three"


def test_numbers_keep_to_their_digits():
    lengths = {len(example.source.split()) for example in numbers(3_000)}
    assert lengths == {1, 2, 3, 4, 5, 6}


def test_every_number_is_found():
    found = {int(example.source.replace(" ", "")) for example in numbers(1_000, limits=(1, 3))}
    assert found == set(range(1_000))


def test_numbers_held_out_first_leave_short_ones_to_learn_from():
    rest = [len(example.source.split()) for example in numbers(5_000, seed=1)[1_000:]]
    assert rest.count(1) >= 3 and rest.count(2) >= 40


def test_numbers_end_where_their_names_do():
    with pytest.raises(ConfigError, match="`max_digits` must be between 1 and 36, but is 37."):
        numbers(1, limits=(1, 37))


def test_dates_are_real_days():
    assert all(date.fromisoformat(example.target) for example in dates(200))


def test_dates_come_in_every_form():
    examples = {example.source: example.target for example in dates(3_000, seed=1)}
    forms = {
        ("," in source, "/" in source, "." in source, source.split("/")[0].isdigit())
        for source in examples
    }
    assert len(forms) == 4


def test_a_date_in_digits_has_its_day_first():
    examples = [e for e in dates(500) if e.source.count("/") == 2 and e.source[3].isdigit()]
    assert all("-".join(e.source.split("/")[::-1]) == e.target for e in examples)
    assert examples


def test_lengths_must_not_be_crossed():
    with pytest.raises(ConfigError, match="`max_length` must be at least 5, but is 4."):
        copy(1, limits=(5, 4))


def test_lengths_must_be_positive():
    with pytest.raises(ConfigError, match="`min_length` must be at least 1, but is 0."):
        sort(1, limits=(0, 12))


def test_numbers_must_have_digits():
    with pytest.raises(ConfigError, match="`max_digits` must be at least 1, but is 0."):
        add(1, limits=(1, 0))


def test_asking_for_more_than_there_is_says_so():
    with pytest.raises(ConfigError, match=r"is 27 and only 26 were found. Ask for fewer or"):
        copy(27, limits=(1, 1))


@pytest.mark.parametrize("first, last", [(2000, 1999), (2000, 10_000)])
def test_years_must_be_in_order_and_have_four_digits(first, last):
    with pytest.raises(
        ConfigError, match=f"`last_year` must be between 2000 and 9999, but is {last}"
    ):
        dates(1, limits=(first, last))


def test_years_have_four_digits():
    with pytest.raises(
        ConfigError, match="`first_year` must be between 1000 and 9999, but is 999."
    ):
        dates(1, limits=(999, 2049))


@pytest.mark.parametrize("name", TOYS)
def test_without_limits_a_task_keeps_its_own(name):
    task = TOYS[name]
    assert task(50, seed=2, limits=task.limits) == task(50, seed=2)


LENGTHS = {
    "copy": lambda source: len(source.split()),
    "reverse": lambda source: len(source.split()),
    "sort": lambda source: len(source.split()),
    "add": lambda source: max(len(side.split()) for side in source.split("+")),
    "numbers": lambda source: len(source.split()),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_longer_sources_have_exactly_the_length_asked_for(name):
    found = generate_by_length(name, lengths=[6, 15], num=30, seed=0)
    assert {length: {LENGTHS[name](e.source) for e in part} for length, part in found.items()} == {
        6: {6},
        15: {15},
    }
    assert all(len({e.source for e in part}) == 30 for part in found.values())


def test_the_length_of_a_date_is_its_decade():
    found = generate_by_length("dates", lengths=[2050, 2065], num=200, seed=0)
    years = {year: {int(e.target[:4]) for e in part} for year, part in found.items()}
    assert years == {2050: set(range(2050, 2060)), 2065: set(range(2065, 2075))}


def test_longer_sources_do_not_begin_with_shorter_ones():
    found = generate_by_length("copy", lengths=[10, 11], num=50, seed=0)
    short = {example.source for example in found[10]}
    assert not any(example.source[:19] in short for example in found[11])


@pytest.mark.parametrize("name", TOYS)
def test_longer_sources_hang_on_the_seed(name):
    lengths = [2100] if name == "dates" else [9]
    one, again = (generate_by_length(name, lengths=lengths, num=20, seed=1) for _ in range(2))
    assert one == again
    assert one != generate_by_length(name, lengths=lengths, num=20, seed=2)


def test_a_task_that_is_none_is_put_right():
    with pytest.raises(ConfigError, match=r"`name` must be one of .* Did you mean 'reverse'\?"):
        generate_by_length("revers", lengths=[3], num=1, seed=0)
