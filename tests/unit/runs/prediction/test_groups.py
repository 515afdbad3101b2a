import threading
import time
from itertools import count, islice

import pytest

from regard.runs.prediction import groups
from regard.runs.prediction.groups import group, group_arriving


@pytest.fixture(params=[group, group_arriving])
def any_group(request):
    return request.param


@pytest.mark.parametrize("num", [0, 1, 3, 6, 7])
def test_items_are_grouped_in_order(any_group, num):
    grouped = list(any_group(iter(range(num)), 3))
    assert [item for items in grouped for item in items] == list(range(num))
    assert all(len(items) == 3 for items in grouped[:-1])


def test_items_that_have_arrived_are_a_group():
    go_on = threading.Event()

    def items():
        yield from "ab"
        assert go_on.wait(9)
        yield "c"

    arriving = group_arriving(items(), 100)
    assert next(arriving) == ["a", "b"]
    go_on.set()
    assert list(arriving) == [["c"]]


def test_items_that_never_pause_are_grouped_after_a_time(monkeypatch):
    monkeypatch.setattr(groups, "MAX_SECONDS", 0.1)

    def items():
        for number in range(100):
            time.sleep(0.01)
            yield number

    sizes = [len(items) for items in group_arriving(items(), 1_000)]
    assert sum(sizes) == 100
    assert 1 < max(sizes) < 50


def test_error_is_raised_after_the_items_before_it():
    def items():
        yield "a"
        raise ValueError("of the items")

    arriving = group_arriving(items(), 10)
    assert next(arriving) == ["a"]
    with pytest.raises(ValueError, match="of the items"):
        next(arriving)


def test_few_items_are_read_in_advance():
    taken = []

    def items():
        for number in count():
            taken.append(number)
            yield number

    arriving = group_arriving(items(), 5)
    assert next(arriving) == [0, 1, 2, 3, 4]
    time.sleep(0.05)
    assert len(taken) <= 11
    arriving.close()


def test_thread_ends_when_no_further_group_is_taken():
    before = threading.active_count()
    arriving = group_arriving(count(), 5)
    list(islice(arriving, 2))
    arriving.close()
    deadline = time.monotonic() + 9
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() == before
