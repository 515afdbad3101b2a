"""A small model with attention learns every synthetic task."""

from functools import partial

import pytest

from regard.data.datasets.synthetic.toys import add, copy, dates, numbers, reverse, sort

pytestmark = pytest.mark.learn
CHARACTERS = ("data.source.kind=char", "data.target.kind=char")


@pytest.fixture(scope="module")
def reverser(learn):
    return learn(partial(reverse, limits=(3, 8)))


@pytest.mark.quick
def test_reverse_is_learned(reverser, value):
    assert value(reverser, "accuracy") >= 95


@pytest.mark.quick
def test_attention_of_reverse_runs_from_the_end_to_the_start(reverser, value):
    assert value(reverser, "aer") <= 0.1


def test_copy_is_learned(learn, value):
    assert value(learn(partial(copy, limits=(3, 8))), "accuracy") >= 95


def test_sort_is_learned(learn, value):
    assert value(learn(partial(sort, limits=(3, 8))), "accuracy") >= 90


@pytest.mark.quick
def test_dates_are_learned(learn, value):
    assert value(learn(dates, *CHARACTERS), "accuracy") >= 85


def test_addition_is_learned(learn, value):
    overrides = ("model.encoder.dim=64", "model.decoder.dim=96", "train.max_steps=1500")
    assert value(learn(partial(add, limits=(1, 2)), *overrides), "accuracy") >= 85


def test_spelling_of_numbers_is_learned(learn, value):
    trained = learn(partial(numbers, limits=(1, 4)), "train.max_steps=800")
    assert value(trained, "accuracy") >= 90
