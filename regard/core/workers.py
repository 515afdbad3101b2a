"""Worker processes that apply a function to chunks of data."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from typing import TypeVar

from regard.core.logging import logger
from regard.core.threads import num_cores

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

MAX_WORKERS = 16


def count_workers(num: int, num_per_worker: int) -> int:
    """Return the number of worker processes for `num` items."""
    return min(MAX_WORKERS, num_cores(), num // num_per_worker)


def map_chunks(
    work: Callable[[Chunk], Result], chunks: Iterable[Chunk], *, num_workers: int
) -> Iterator[Result]:
    """Apply a function to chunks in worker processes; yield results in order.

    At most two chunks per worker process are in memory at a time.

    Args:
        work: Function of a chunk; it is pickled for the worker processes.
        chunks: The chunks.
        num_workers: Number of worker processes; below 2, this process handles all chunks.
    """
    if num_workers < 2:
        yield from map(work, chunks)
        return
    remaining = iter(chunks)
    pending: deque[Chunk] = deque()
    futures: deque[Future[Result]] = deque()
    # Not forked: a forked process would inherit threads and devices in an undefined state.
    pool = ProcessPoolExecutor(num_workers, get_context("spawn"), prepare_worker)
    try:
        while True:
            for chunk in islice(remaining, 2 * num_workers - len(pending)):
                pending.append(chunk)
                futures.append(pool.submit(work, chunk))
            if not pending:
                break
            result = futures.popleft().result()
            pending.popleft()
            yield result
    except BrokenProcessPool:
        logger.warning(
            "worker processes have ended early, and the data are processed in this one. "
            "Does your script run its code under `if __name__ == '__main__':`?"
        )
        yield from map(work, chain(pending, remaining))
    finally:
        pool.shutdown(cancel_futures=True)


def prepare_worker() -> None:
    """Ignore Ctrl-C, which the main process handles, and end with it, also if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
