"""Prefetching of batches in a background thread."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

_END = object()


def prefetch(items: Iterator[Item], *, depth: int = 2) -> Iterator[Item]:
    """Yield items in order, building up to `depth` of them in advance.

    An error while building an item is raised when the item is due. One thread builds all items,
    so an item may depend on earlier items, but not on state that the consumer changes, such as
    torch's global random generators.

    Args:
        items: Iterator that builds the items; the caller must not use it otherwise.
        depth: Maximum number of items built in advance.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    try:
        pending = deque(pool.submit(next, items, _END) for _ in range(depth))
        while (item := pending.popleft().result()) is not _END:
            pending.append(pool.submit(next, items, _END))
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(cancel_futures=True)
