import pytest

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data, split_label_filter

NAME = "shapes:200"


def labels(splits):
    return [{example.target for example in side} for side in (splits.train, splits.valid)]


@pytest.mark.parametrize(
    ("argument", "parts"),
    [
        ("", ("", "")),
        ("1000", ("1000", "")),
        ("only=a,b", ("", "only=a,b")),
        ("1000,without=ankle boot", ("1000", "without=ankle boot")),
        ("speaker=jackson", ("speaker=jackson", "")),
    ],
)
def test_choice_stands_after_what_the_data_set_is_asked_for(argument, parts):
    assert split_label_filter(argument) == parts


def test_only_and_without_are_two_halves_of_one_data_set():
    whole = find_data(NAME)
    only, without = (find_data(f"{NAME},{how}=circle,star") for how in ("only", "without"))
    assert labels(only)[0] == {"circle", "star"}
    assert not labels(without)[0] & {"circle", "star"}
    for side in ("train", "valid", "test"):
        both = getattr(only, side) + getattr(without, side)
        assert sorted(e.source for e in both) == sorted(e.source for e in getattr(whole, side))
    assert "only circle, star" in only.note


def test_label_that_is_none_is_named():
    with pytest.raises(DataError, match=r"one of them is 'cirle'\. Did you mean 'circle'\?"):
        find_data(f"{NAME},only=cirle")


def test_choice_of_nothing_is_an_error():
    names = ",".join(sorted(labels(find_data(NAME))[0]))
    with pytest.raises(DataError, match="leaves no examples in the train split"):
        find_data(f"{NAME},without={names}")
