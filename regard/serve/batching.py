"""Dynamic batching: one thread per run computes what is waiting, up to the size of a batch.

The sources of several requests are computed together, and each request gets its own results, which
do not depend on the other sources. A request waits for the batch in progress, never for more
requests to arrive, except for `WINDOW` seconds if the run is idle.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from regard.search.watching import ReadBest, Watch, watching
from regard.serve.errors import RequestError, busy

WINDOW = 0.002
"""Seconds for which an idle run waits for other requests."""

THREAD_NAME = "regard-serve"
"""Beginning of the names of the threads."""

Compute = Callable[[list[Any]], Sequence[Any]]
"""Sources → their results, in the same order."""


class AbandonedError(Exception):
    """The requests of a batch were cancelled while it was computed."""


@dataclass(eq=False)
class Job:
    """The sources of a request."""

    key: Hashable
    """Sources of jobs with the same key are computed together."""
    items: Sequence[Any]
    compute: Compute
    """Computes the results; equal for all jobs with the same key."""
    watch: Watch | None = None
    """Called after each step of a search; only for a job with a key of its own."""
    started: float = field(default_factory=time.perf_counter)
    """Time at which it began to wait."""
    is_cancelled: bool = False
    num_taken: int = 0
    results: dict[int, Any] = field(default_factory=dict)
    """Results of the items so far; an exception for an item that failed."""

    @property
    def is_waiting(self) -> bool:
        """Whether some items are not in a batch yet."""
        return self.num_taken < len(self.items)

    def take(self) -> tuple["Job", int]:
        """Return the next item as its job and its index."""
        self.num_taken += 1
        return self, self.num_taken - 1


Batch = list[tuple[Job, int]]
"""Items as their jobs and indices."""


class Batcher:
    """Queue of a run and the thread that computes its batches.

    Args:
        name: Name of the run.
        max_batch: Maximum number of sources in a batch.
        max_waiting: Maximum number of sources that wait for a batch.
        max_seconds: Maximum time that they are expected to wait.
        report: Called with the number of sources and the seconds of each batch.
        prepare: Called by the thread before its first batch.
    """

    def __init__(
        self,
        name: str,
        *,
        max_batch: int,
        max_waiting: int,
        max_seconds: float = math.inf,
        report: Callable[[int, float], None] = lambda num, seconds: None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._max_batch, self._max_waiting = max_batch, max_waiting
        self._max_seconds = max_seconds
        self._report, self._prepare = report, prepare
        self._jobs: deque[Job] = deque()
        self._futures: dict[Job, tuple[asyncio.AbstractEventLoop, asyncio.Future[list[Any]]]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._rate = 0.0
        self.num_waiting = 0
        """Number of sources that wait for a batch."""

    @property
    def is_working(self) -> bool:
        """Whether the thread runs, or will be started by the next job."""
        return self._thread is None or self._thread.is_alive()

    async def submit(self, job: Job) -> list[Any]:
        """Return the results of a job; raise `RequestError` if the queue is full.

        If the task is cancelled, the items that wait are removed from the queue, and a batch in
        progress ends if all its jobs are cancelled.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        with self._changed:
            self._check_capacity(len(job.items))
            self._jobs.append(job)
            self.num_waiting += len(job.items)
            self._futures[job] = loop, future
            self._start()
            self._changed.notify()
        try:
            return await future
        finally:
            job.is_cancelled = not future.done() or future.cancelled()
            with self._changed:
                self._futures.pop(job, None)
                if job.is_cancelled and job in self._jobs:
                    self._jobs.remove(job)
                    self.num_waiting -= len(job.items) - job.num_taken

    def close(self) -> None:
        """Refuse new jobs, complete those that wait and end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _check_capacity(self, num: int) -> None:
        if self._is_closing:
            raise RequestError(503, "The server is stopping.", {"Retry-After": "5"})
        waiting = self.num_waiting
        # Before the first batch the rate is unknown.
        seconds = waiting / self._rate if self._rate else 0.0
        # A request that is larger than the queue is accepted by an idle run.
        if waiting and (waiting + num > self._max_waiting or seconds > self._max_seconds):
            raise self._busy()

    def _busy(self) -> RequestError:
        seconds = self.num_waiting / self._rate if self._rate else 1.0
        return busy(
            f"{self.num_waiting:,} sources are waiting for '{self._name}', which takes about "
            f"{seconds:.0f} seconds. Try again later.",
            min(60, max(1, round(seconds))),
        )

    def _start(self) -> None:
        """Start the thread, also after it has died."""
        if self._thread is None or not self._thread.is_alive():
            name = f"{THREAD_NAME}-{self._name}"
            self._thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        self._prepare()
        while batch := self._next_batch():
            started = time.perf_counter()
            self._compute(batch)
            seconds = time.perf_counter() - started
            rate = len(batch) / max(seconds, 1e-6)
            self._rate = 0.8 * self._rate + 0.2 * rate if self._rate else rate
            self._report(len(batch), seconds)

    def _next_batch(self) -> Batch:
        """Wait for jobs and return the next batch; an empty one at the end.

        The oldest job is always part of it. Jobs take turns, so that a request with many sources
        does not keep one with a single source waiting.
        """
        with self._changed:
            self._refuse_late()
            while not self._jobs:  # all may have been cancelled during the window
                if self._is_closing:
                    return []
                self._changed.wait_for(lambda: self._jobs or self._is_closing)
                self._changed.wait_for(self._is_full, WINDOW)
            key = self._jobs[0].key
            mates = deque(job for job in self._jobs if job.key == key)
            batch: Batch = []
            while mates and len(batch) < self._max_batch:
                job = mates.popleft()
                batch.append(job.take())
                if job.is_waiting:
                    mates.append(job)
            self._jobs = deque(job for job in self._jobs if job.is_waiting)
            self.num_waiting -= len(batch)
            return batch

    def _refuse_late(self) -> None:
        """Refuse the jobs that have waited too long, since batches took longer than expected."""
        latest = time.perf_counter() - self._max_seconds
        while self._jobs and not self._jobs[0].num_taken and self._jobs[0].started < latest:
            job = self._jobs.popleft()
            job.results = dict.fromkeys(range(len(job.items)), self._busy())
            self.num_waiting -= len(job.items)
            self._complete({job})

    def _is_full(self) -> bool:
        return self.num_waiting >= self._max_batch or self._is_closing

    def _compute(self, batch: Batch) -> None:
        """Compute a batch; if that fails, its halves, so that an item cannot fail the others."""
        if all(job.is_cancelled for job, _ in batch):
            return
        try:
            results = self._compute_together(batch)
        except AbandonedError:
            return
        except Exception as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                self._compute(batch[:middle])
                self._compute(batch[middle:])
                return
            results = [error]
        for (job, index), result in zip(batch, results, strict=True):
            job.results[index] = result
        self._complete({job for job, _ in batch})

    def _compute_together(self, batch: Batch) -> Sequence[Any]:
        first = batch[0][0]

        def watch(read: ReadBest) -> None:
            if all(job.is_cancelled for job, _ in batch):
                raise AbandonedError
            if first.watch is not None:
                first.watch(read)

        with watching(watch):
            return first.compute([job.items[index] for job, index in batch])

    def _complete(self, jobs: set[Job]) -> None:
        """Send the results of the jobs that are complete to their event loops."""
        for job in jobs:
            if len(job.results) < len(job.items):
                continue
            with self._changed:
                found = self._futures.get(job)
            if found is not None:
                loop, future = found
                with suppress(RuntimeError):  # The loop may have ended.
                    loop.call_soon_threadsafe(_resolve, future, job)


def _resolve(future: asyncio.Future[list[Any]], job: Job) -> None:
    if future.done():
        return
    results = [job.results[index] for index in range(len(job.items))]
    error = next((result for result in results if isinstance(result, Exception)), None)
    if error is None:
        future.set_result(results)
    else:
        future.set_exception(error)
