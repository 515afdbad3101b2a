"""Groups of items, also of items that arrive one after another, such as the lines of a pipe."""

import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from queue import Empty, Full, Queue
from typing import TypeVar

Item = TypeVar("Item")

PAUSE_SECONDS = 0.1
"""Time without a further item that closes a group of arriving items."""

MAX_SECONDS = 1.0
"""Maximum time from the first item of a group of arriving items to the last."""


class _End:
    """End of the items, with the error that ended them, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def group(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield items in order, in groups of `size`; the last group may be smaller."""
    remaining = iter(items)
    while taken := list(islice(remaining, size)):
        yield taken


def group_arriving(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield items in order, in groups of `size`, or of those that have arrived before a pause.

    A thread waits for the items and keeps at most `size` of them in advance. An error of the items
    is raised after the items before it.
    """
    queue: Queue[Item | _End] = Queue(size)
    is_closed = threading.Event()
    arguments = (iter(items), queue, is_closed)
    # A daemon, since a read of a pipe cannot be interrupted.
    threading.Thread(target=_fill, args=arguments, daemon=True).start()
    try:
        while True:
            arrived, end = _take(queue, size)
            if arrived:
                yield arrived
            if end is not None:
                if end.error is not None:
                    raise end.error
                return
    finally:
        is_closed.set()


def _take(queue: "Queue[Item | _End]", size: int) -> tuple[list[Item], _End | None]:
    """Wait for an item, and return it with those that follow without a pause."""
    arrived: list[Item] = []
    item, closes = queue.get(), time.monotonic() + MAX_SECONDS
    while not isinstance(item, _End):
        arrived.append(item)
        if len(arrived) == size:
            return arrived, None
        try:
            item = queue.get(timeout=max(min(PAUSE_SECONDS, closes - time.monotonic()), 0))
        except Empty:
            return arrived, None
    return arrived, item


def _fill(items: Iterator[Item], queue: "Queue[Item | _End]", is_closed: threading.Event) -> None:
    """Put items into a queue, then their end, until the queue is closed."""
    end = _End(None)
    try:
        for item in items:
            if not _put(item, queue, is_closed):
                return
    except BaseException as error:  # Raised by the thread that takes the items.
        end = _End(error)
    _put(end, queue, is_closed)


def _put(item: "Item | _End", queue: "Queue[Item | _End]", is_closed: threading.Event) -> bool:
    """Put an item into a queue when there is room; return whether it was put."""
    while not is_closed.is_set():
        try:
            queue.put(item, timeout=1)
        except Full:
            continue
        return True
    return False
