from datetime import date

import pytest

from regard.core.errors import ConfigError
from regard.data.synthetic import SYNTHETIC, add, copy, dates, reverse, sort


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_seed_gives_always_the_same_examples(name):
    assert SYNTHETIC[name](50, seed=3) == SYNTHETIC[name](50, seed=3)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_another_seed_gives_other_examples(name):
    assert SYNTHETIC[name](50, seed=3) != SYNTHETIC[name](50, seed=4)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_no_source_comes_twice(name):
    examples = SYNTHETIC[name](300, seed=0)
    assert len({example.source for example in examples}) == 300


@pytest.mark.parametrize("name", SYNTHETIC)
def test_fewer_than_no_examples_are_refused(name):
    with pytest.raises(ConfigError, match="`num` must be at least 0, but is -1."):
        SYNTHETIC[name](-1)


@pytest.mark.parametrize("name", ["copy", "reverse", "sort"])
def test_lengths_stay_within_their_limits(name):
    lengths = {len(e.source.split()) for e in SYNTHETIC[name](300, min_length=2, max_length=4)}
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
    sides = [side for e in add(50, max_digits=2) for side in e.source.split(" + ")]
    assert max(len(side.split()) for side in sides) == 2


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
        copy(1, min_length=5, max_length=4)


def test_lengths_must_be_positive():
    with pytest.raises(ConfigError, match="`min_length` must be at least 1, but is 0."):
        sort(1, min_length=0)


def test_numbers_must_have_digits():
    with pytest.raises(ConfigError, match="`max_digits` must be at least 1, but is 0."):
        add(1, max_digits=0)


def test_asking_for_more_than_there_is_says_so():
    with pytest.raises(ConfigError, match=r"is 27 and only 26 were found. Ask for fewer or"):
        copy(27, min_length=1, max_length=1)
