import threading
import time

import pytest

from regard.core.errors import DataError
from regard.training.prefetch import prefetch


def count_threads():
    return sum(thread.name.startswith("prefetch") for thread in threading.enumerate())


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("num", [0, 1, 2, 7])
def test_same_items_in_the_same_order(num, depth):
    assert [*prefetch(iter(range(num)), depth=depth)] == [*range(num)]
    assert count_threads() == 0


def test_none_is_a_valid_item():
    assert [*prefetch(iter([None, 0, None]))] == [None, 0, None]


def test_at_most_depth_items_are_built_in_advance():
    built = []

    def items():
        for number in range(10):
            built.append(number)
            yield number

    fetched = prefetch(items(), depth=2)
    assert next(fetched) == 0
    deadline = time.monotonic() + 5
    while len(built) < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert built == [0, 1, 2]
    fetched.close()


def test_error_is_raised_when_its_item_is_due():
    def items():
        yield 1
        yield 2
        raise DataError("the third is bad")

    fetched = prefetch(items())
    assert (next(fetched), next(fetched)) == (1, 2)
    with pytest.raises(DataError, match="the third is bad"):
        next(fetched)
    assert [*fetched] == [] and count_threads() == 0


def test_thread_ends_when_the_iterator_is_closed():
    fetched = prefetch(iter(range(10)))
    assert next(fetched) == 0 and count_threads() == 1
    fetched.close()
    assert count_threads() == 0
