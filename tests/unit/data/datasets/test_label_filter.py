import pytest

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data, split_label_filter

NAME = "shapes:200"


def labels(splits):
    return [{example.target for example in part} for part in (splits.train, splits.valid)]


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
def test_label_filter_is_split_from_argument(argument, parts):
    assert split_label_filter(argument) == parts


def test_only_and_without_are_complementary():
    unfiltered = find_data(NAME)
    only, without = (find_data(f"{NAME},{mode}=circle,star") for mode in ("only", "without"))
    assert labels(only)[0] == {"circle", "star"}
    assert not labels(without)[0] & {"circle", "star"}
    for part in ("train", "valid", "test"):
        both = getattr(only, part) + getattr(without, part)
        assert sorted(e.source for e in both) == sorted(e.source for e in getattr(unfiltered, part))
    assert "only circle, star" in only.note


def test_unknown_label_raises_with_suggestion():
    with pytest.raises(DataError, match=r"one of them is 'cirle'\. Did you mean 'circle'\?"):
        find_data(f"{NAME},only=cirle")


def test_filter_that_removes_everything_raises():
    names = ",".join(sorted(labels(find_data(NAME))[0]))
    with pytest.raises(DataError, match="leaves no examples in the train split"):
        find_data(f"{NAME},without={names}")
