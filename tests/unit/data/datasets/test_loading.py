from collections import Counter
from itertools import count

import pytest

from regard.core.errors import DataError
from regard.data.datasets import catalog
from regard.data.datasets.loading import (
    assign_part,
    build_splits,
    fill_parts,
    find_package,
    parse_argument,
    parse_number,
    split_off,
)
from regard.data.example import Example


def examples(*numbers):
    return [Example(str(number), "x") for number in numbers]


def test_assigned_splits_have_about_the_given_shares():
    counts = Counter(assign_part(str(number), valid=10, test=20) for number in range(5_000))
    assert 0.08 < counts[1] / 5_000 < 0.12
    assert 0.18 < counts[2] / 5_000 < 0.22


def test_size_of_one_split_does_not_change_the_others():
    def fill(num_train):
        return fill_parts(count(), examples, (num_train, 2, 3), key=str)

    small, large = fill(1), fill(9)
    assert list(map(len, large)) == [9, 2, 3]
    assert small[1:] == large[1:] and small[0] == large[0][:1]


def test_first_examples_are_held_out():
    assert split_off(examples(0, 1, 2, 3, 4), 2) == (examples(4), examples(0, 1), examples(2, 3))


@pytest.mark.parametrize(
    ("argument", "expected"), [("", ("", 0)), ("a", ("a", 0)), ("7", ("", 7)), ("a,7", ("a", 7))]
)
def test_argument_has_kind_and_number(argument, expected):
    assert parse_argument(argument, "set", ("", "a")) == expected


@pytest.mark.parametrize("argument", ["b", "b,7", ",7", "a,", "0", "a7"])
def test_invalid_arguments_raise(argument):
    with pytest.raises(DataError, match=rf"argument of 'set:' must be one of 'a'.*'{argument}'\."):
        parse_argument(argument, "set", ("", "a"))


def test_thousands_separators_are_accepted():
    assert parse_number("12,000", "set", 5) == parse_number("12_000", "set", 5) == 12_000
    assert parse_number("", "set", 5) == 5


def test_missing_package_raises():
    with pytest.raises(DataError, match=r"'set' needs a package.*pip install 'regard\[data\]'"):
        find_package("set", "no_such_package")


def test_note_has_sizes():
    splits = build_splits((examples(1, 2), examples(3), []), "somewhere", "; and more")
    assert splits.note == "somewhere: 2 train, 1 valid, 0 test; and more"


def test_every_described_data_set_has_a_loader():
    assert list(catalog._DESCRIPTIONS) == list(catalog.LOADERS)
