"""Batches built ahead in a thread while the model works on those before."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

_END = object()


def prefetch(items: Iterator[Item], *, depth: int = 2) -> Iterator[Item]:
    """Yield the same items in the same order, some of them built before they are asked for.

    What goes wrong with an item is raised in its place. One thread builds, so items may hang on
    those before them, but not on what their user does meanwhile, nor on torch's own chance.

    Args:
        items: What is to be built; nobody else may use it.
        depth: How many items may wait to be used.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    try:
        ahead = deque(pool.submit(next, items, _END) for _ in range(depth))
        while (item := ahead.popleft().result()) is not _END:
            ahead.append(pool.submit(next, items, _END))
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(cancel_futures=True)
